package pebblestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/build"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// filesOf returns the names and bytes of a folder's files.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// TestFormat: a new folder says its format and its first build, which another build of the same format leaves as it is.
func TestFormat(t *testing.T) {
	ctx, script, dir := t.Context(), storetest.Script{Rounds: 3}, filepath.Join(t.TempDir(), "state")
	name, line := filepath.Join(dir, formatName), "panlearn state folder, format 1, written by panlearn "+build.This().Version+"\n"
	for i, says := range []string{line, strings.Replace(line, build.This().Version, "v0.0.1", 1)} {
		if i > 0 {
			if err := os.WriteFile(name, []byte(says), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(script.Advance(ctx, s), s.Close(), CheckFormat(dir)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(name); string(data) != says {
			t.Errorf("FORMAT says %q, %v, want %q", data, err, says)
		}
	}
	if err := CheckFormat(filepath.Join(dir, "nothing")); err != nil {
		t.Errorf("nothing is there: %v", err)
	}
}

// TestOtherFormat: a folder of another format, and one whose FORMAT is damaged or gone, is refused by readers and
// writers, with both numbers and the build that wrote it, and not a byte is changed.
func TestOtherFormat(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(storetest.Script{Rounds: 3}.Advance(ctx, s), s.Close(),
		os.Remove(filepath.Join(dir, "LOCK"))); err != nil {
		t.Fatal(err)
	}
	const gone = "gone"
	for line, want := range map[string]string{
		"panlearn state folder, format 2, written by panlearn v7.1.0\n":                      "version 2, this build reads version 1: use build v7.1.0, which wrote it",
		"panlearn state folder, format 3\n":                                                  "version 3, this build reads version 1: use the build that wrote it",
		"panlearn state folder, format 65535, written by panlearn v9\nand more of its own\n": "use build v9, which wrote it",
		"panlearn state folder, format 0, written by panlearn v1\n":                          "version 0, this build reads version 1: use build v1, which",
		"panlearn state folder, format two\n":                                                "damaged",
		"":                                                                                   "damaged",
		gone:                                                                                 "damaged",
		"panlearn state folder, format 70000, " + strings.Repeat("of a very late format ", 99): "damaged",
	} {
		name := filepath.Join(dir, formatName)
		if err := os.WriteFile(name, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if line == gone {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		before := filesOf(t, dir)
		for _, readOnly := range []bool{false, true} {
			_, err := Open(dir, Options{ReadOnly: readOnly})
			var other *state.VersionError
			if errors.As(err, &other) == (want == "damaged") || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", line, err, want)
			} else if want != "damaged" && !strings.Contains(err.Error(), "docs/how-to/upgrades.md has the way back") {
				t.Errorf("%q: %v, want the page with the way back", line, err)
			}
		}
		after := filesOf(t, dir)
		for name, data := range after {
			if before[name] != data {
				t.Errorf("%q: %s was written", line, name)
			}
		}
		if len(after) != len(before) {
			t.Errorf("%q: %d files, before %d", line, len(after), len(before))
		}
	}
}
