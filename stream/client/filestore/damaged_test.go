package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/filestore"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// TestDamagedFile: a page that is none, wherever it is, is an error of what needs it, and of everything after it.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.participation")
	s := open(t, path)
	must(t, s.Write(participation.Change{Rounds: map[stream.Round]stream.Hash{1: {2}}}))
	must(t, s.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	refused := 0
	for page := range len(whole) / os.Getpagesize() {
		data := append([]byte(nil), whole...)
		copy(data[os.Getpagesize()*page+8:], "\xff\xff\xff\xff") // flags and count
		path := filepath.Join(dir, "damaged.participation")
		must(t, os.WriteFile(path, data, 0o600))
		s, err := filestore.Open(path)
		if err == nil {
			_, _, err = s.Manifest(1)
			if again := s.Write(participation.Change{Rounds: map[stream.Round]stream.Hash{2: {3}}}); err != nil && again == nil {
				t.Errorf("page %d: written to after it was found damaged", page)
			}
			must(t, s.Close())
		}
		if err != nil {
			refused++
		}
		must(t, os.Remove(path))
	}
	if refused == 0 {
		t.Error("no page mattered")
	}
}
