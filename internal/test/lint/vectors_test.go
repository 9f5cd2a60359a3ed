package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecondReaderKnowsEveryField: vectors need not use a new field, so they pass a reader that refuses every record of a
// real task. The reader in Python lists the fields of what a device reads.
func TestSecondReaderKnowsEveryField(t *testing.T) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	proto, reader := read("stream", "wire", "panlearn.proto"), read("docs", "vectors", "check_vectors.py")
	field, seen := regexp.MustCompile(`(?m)^ +(?:repeated )?\w+ (\w+) = (\d+);`), 0
	for _, m := range regexp.MustCompile(`(?ms)^message (\w+) \{\n(.*?)^\}`).FindAllStringSubmatch(proto, -1) {
		switch m[1] {
		case "StageIdentity", "HelperIdentity", "Share", "Exchange", "Batch", "Reject", "Report", "Descent", "Acceleration": // read by no device, or known by few fields
			continue
		}
		for _, f := range field.FindAllStringSubmatch(m[2], -1) {
			seen++
			if f[1] == "version" || f[1] == "task_hash" || f[1] == "round" {
				continue // in its table of what all have
			}
			if !strings.Contains(reader, f[2]+`: ("`+f[1]+`", `) {
				t.Errorf("check_vectors.py does not know %s of %s, field %s", f[1], m[1], f[2])
			}
		}
	}
	if seen < 80 {
		t.Errorf("%d fields found: the pattern is broken", seen)
	}
}
