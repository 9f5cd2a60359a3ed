package pebblestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/storetest"
)

// filesOf are the names and bytes of a folder's files.
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

// TestFormat: a new folder says its format, one from before there was the file is of format 1 and says so once it is opened
// to be written, and a reader changes nothing.
func TestFormat(t *testing.T) {
	ctx, script, dir := t.Context(), storetest.Script{Rounds: 3}, filepath.Join(t.TempDir(), "state")
	open := func(o Options) *Store {
		t.Helper()
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	says := func(want string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, formatName))
		if string(data) != want || (err == nil) != (want != "") {
			t.Errorf("FORMAT says %q, %v, want %q", data, err, want)
		}
	}
	line := "panlearn state folder, format 1, written by panlearn " + build() + "\n"
	s := open(Options{})
	says(line)
	if err := errors.Join(script.Advance(ctx, s), s.Close(), os.Remove(filepath.Join(dir, formatName))); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFormat(dir); err != nil || got != (FormatRecord{Version: 1}) {
		t.Errorf("without the file: %+v, %v", got, err)
	}
	s = open(Options{ReadOnly: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	says("")
	s = open(Options{})
	if n, err := script.Check(ctx, s); err != nil || n != 1 {
		t.Errorf("%d commits, %v, want 1", n, err)
	}
	says(line)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(line, build(), "v0.0.1", 1)
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	says(other) // whose build stays the first of its format
}

// TestNewerFormat: a folder of a later format is refused by readers and writers, with its build, and not a byte is changed.
func TestNewerFormat(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(storetest.Script{Rounds: 3}.Advance(ctx, s), s.Close(), os.Remove(filepath.Join(dir, "LOCK"))); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"panlearn state folder, format 2, written by panlearn v7.1.0\n":                      "build v7.1.0, which wrote it, or a newer one",
		"panlearn state folder, format 3\n":                                                  "the build that wrote it or a newer one",
		"panlearn state folder, format 65535, written by panlearn v9\nand more of its own\n": "build v9, which wrote it, or",
		"panlearn state folder, format 0, written by panlearn v1\n":                          "damaged",
		"panlearn state folder, format two\n":                                                "damaged",
		"":                                                                                   "damaged",
		"panlearn state folder, format 70000, " + strings.Repeat("of a very late format ", 99): "damaged",
	} {
		if err := os.WriteFile(filepath.Join(dir, formatName), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		before := filesOf(t, dir)
		for _, readOnly := range []bool{false, true} {
			_, err := Open(dir, Options{ReadOnly: readOnly})
			var newer *state.VersionError
			if errors.As(err, &newer) == (want == "damaged") || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", line, err, want)
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
