//go:build linux

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReplace puts a new file over the old one; where a call fails before the rename, the old file stays alone.
func TestReplace(t *testing.T) {
	path, broken := filepath.Join(t.TempDir(), "file"), errors.New("broken")
	must(t, Durable.Replace(path, []byte("old")))
	s := Syncer{File: func(*os.File) error { return broken }, Folder: SyncFolder}
	if err := s.Replace(path, []byte("new")); !errors.Is(err, broken) {
		t.Errorf("a file that is not synced: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" || len(entries) != 1 {
		t.Errorf("%q, %v, %d files: want the old file alone", data, err, len(entries))
	}
	must(t, Durable.Replace(path, []byte("new")))
	if data, err := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Errorf("%q, %v: want the new file", data, err)
	}
	s = Syncer{File: (*os.File).Sync, Folder: func(string) error { return broken }}
	if err := s.Replace(path, nil); !errors.Is(err, broken) {
		t.Errorf("a folder that is not synced: %v", err)
	}
}
