package consent_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// asRefused reports whether an error is the refusal of a policy, and sets it.
func asRefused(err error, refused **consent.RefusedError) bool { return errors.As(err, refused) }

// consentFile is docs/vectors/consent.json.
type consentFile struct {
	Tasks  []taskVector  `json:"tasks"`
	Rounds []roundVector `json:"rounds"`
	Again  []againVector `json:"participations"`
	Totals []totalVector `json:"totals"`
}

// TestConsentVectors runs the vectors through the checks of a device, and compares them with the file.
func TestConsentVectors(t *testing.T) {
	file := consentFile{Tasks: taskVectors(t), Again: againVectors(t), Totals: totalVectors(t)}
	file.Rounds = roundVectors(t, file.Tasks)
	golden.JSON(t, filepath.Join(vectorFolder, "consent.json"), file, 1e-9)
}

// quoted finds the names of functions in what the page says of a check, of a package's function or a type's method.
var quoted = regexp.MustCompile("`([A-Za-z.]+)`$")

// TestEveryCheckHasItsVectors: each check of the page has a vector that it refuses, is one that errors are known by, and
// names a function that there is.
func TestEveryCheckHasItsVectors(t *testing.T) {
	page, known, refused := vectors.Page(t, moduleFolder), vectors.Known(), make(map[string]bool)
	code := vectors.Code(t, moduleFolder)
	for _, name := range []string{"consent.json", "signed.json", "relay.json"} {
		data, err := os.ReadFile(filepath.Join(vectorFolder, name))
		must(t, err)
		var doc any
		must(t, json.Unmarshal(data, &doc))
		gather(doc, refused)
	}
	for number, text := range page {
		if !refused[number] {
			t.Errorf("%s has no vector that it refuses", number)
		}
		if !slices.Contains(known, number) {
			t.Errorf("%s stands in the page, and no error is known by it", number)
		}
		m := quoted.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s names no function: %q", number, text)
		} else if !vectors.HasFunction(code, m[1]) {
			t.Errorf("%s names %s, which there is not", number, m[1])
		}
	}
	for _, number := range slices.Concat(known, slices.Collect(maps.Keys(refused))) {
		if page[number] == "" {
			t.Errorf("%s does not stand in the page", number)
		}
	}
}

// gather collects the numbers that a document lists as refused.
func gather(doc any, refused map[string]bool) {
	switch v := doc.(type) {
	case map[string]any:
		if number, ok := v["refused"].(string); ok {
			refused[number] = true
		}
		for _, part := range v {
			gather(part, refused)
		}
	case []any:
		for _, part := range v {
			gather(part, refused)
		}
	}
}
