package pebblestore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

func TestReadOnly(t *testing.T) {
	ctx := context.Background()
	script := storetest.Script{Rounds: 4}
	fs := vfs.NewMem()
	if _, err := Open(folder, Options{fs: fs, ReadOnly: true}); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("read-only open of nothing: %v, want ErrEmpty", err)
	}
	if _, err := fs.Stat(folder); err == nil {
		t.Error("a read-only open created the folder")
	}
	if err := fs.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder, Options{fs: fs, ReadOnly: true}); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("read-only open of an empty folder: %v, want ErrEmpty", err)
	}
	s, err := Open(folder, Options{fs: fs})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := script.Advance(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(folder, Options{fs: fs, ReadOnly: true}); !errors.Is(err, state.ErrLocked) {
		t.Errorf("read-only open of a folder in use: %v, want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	before := files(t, fs)
	s, err = Open(folder, Options{fs: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := script.Check(ctx, s); err != nil || n != 3 {
		t.Errorf("read-only: %d commits, %v, want 3", n, err)
	}
	if err := script.Advance(ctx, s); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("commit to a read-only store: %v, want ErrReadOnly", err)
	}
	select {
	case <-s.Failed():
		t.Error("a refused commit broke the store")
	default:
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, fs); !slices.Equal(before, after) {
		t.Errorf("a read-only open changed the files from %v to %v", before, after)
	}
}

func files(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
