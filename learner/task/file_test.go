package task

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStartIsTheHashOfAFile: a task file names the file of a snapshot, from its own folder; the declaration has
// its hash, and another file is another declaration.
func TestStartIsTheHashOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("model.json", "a snapshot")
	file := write("task.yaml", plain)
	canonical := func(start string) []byte {
		s, err := Load(file, []string{"model.start=" + start})
		if err != nil {
			t.Fatal(err)
		}
		if string(s.Model.Start.Data()) == "" {
			t.Error("the snapshot was not read")
		}
		if hash, known := s.Model.Start.Hash(); start == "model.json" &&
			(!known || hash != sha256.Sum256([]byte("a snapshot"))) {
			t.Errorf("hash %x, %v", hash, known)
		}
		data, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := canonical("model.json")
	if !strings.Contains(string(one), `"start":"sha256:`) || strings.Contains(string(one), "model.json") {
		t.Errorf("declaration: %s", one)
	}
	again, err := ParseCanonical(one)
	if err != nil {
		t.Fatal(err)
	}
	if again.Model.Start.Data() != nil {
		t.Error("a declaration carries the snapshot")
	}
	if hash, known := again.Model.Start.Hash(); !known || hash != sha256.Sum256([]byte("a snapshot")) {
		t.Errorf("hash %x, %v after a round trip", hash, known)
	}
	write("other.json", "another")
	if d := Differences(one, canonical(filepath.Join(dir, "other.json"))); len(d) != 1 || d[0].Key != "model.start" {
		t.Errorf("another snapshot: %v", d)
	}
	for _, bad := range []string{"missing.json", "sha256:12", "sha256:" + strings.Repeat("AB", 32), `""`, "[1]"} {
		if _, err := Load(file, []string{"model.start=" + bad}); err == nil || !strings.Contains(err.Error(), "model.start") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if s, err := Parse([]byte(plain), []string{"model.start=model.json"}); err != nil {
		t.Error(err)
	} else if _, err := s.Canonical(); err == nil {
		t.Error("a declaration without the hash of its snapshot")
	}
	if out, err := Edit([]byte(plain), []string{"model.start=model.json"}, ""); err != nil ||
		!strings.Contains(string(out), "start: model.json") {
		t.Errorf("edited: %v\n%s", err, out)
	}
}
