package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// JSON fails the test where a file does not hold what v encodes as, numbers within a relative tolerance: machines differ
// in the last digits of logarithms. Inputs of a vector are decimal numbers that every machine reads alike.
func JSON(t *testing.T, path string, v any, tolerance float64) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(file, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	if where := differs(got, want, tolerance); where != "" {
		t.Errorf("%s is not what the code says, at %s: run this test with -update", path, where)
	}
}

// differs returns where two documents are not the same; empty where they are.
func differs(a, b any, tolerance float64) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %d keys", len(x))
		}
		for key, v := range x {
			if where := differs(v, y[key], tolerance); where != "" {
				return "." + key + where
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %d items", len(x))
		}
		for i, v := range x {
			if where := differs(v, y[i], tolerance); where != "" {
				return fmt.Sprintf("[%d]%s", i, where)
			}
		}
		return ""
	case float64:
		if y, ok := b.(float64); ok && math.Abs(x-y) <= tolerance*math.Max(math.Abs(x), math.Abs(y)) {
			return ""
		}
	}
	if a == b {
		return ""
	}
	return fmt.Sprintf(": %.40v, want %.40v", a, b)
}
