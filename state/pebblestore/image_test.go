package pebblestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/storetest"
)

// image is what is committed after three rounds of a script.
func image(t *testing.T) (script storetest.Script, c state.Checkpoint, entries []state.Entry) {
	t.Helper()
	ctx := t.Context()
	script = storetest.Script{Rounds: 4}
	from := state.NewMemory()
	for range 3 {
		if err := script.Advance(ctx, from); err != nil {
			t.Fatal(err)
		}
	}
	c, ledger, err := storetest.Read(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	for e := range ledger.Entries() {
		entries = append(entries, e)
	}
	return script, c, entries
}

// TestWrite makes a folder that goes on as the one it was taken from; it replaces nothing, and leaves nothing of a ledger
// that does not belong to the checkpoint.
func TestWrite(t *testing.T) {
	ctx := t.Context()
	script, c, entries := image(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "copy")
	if err := Write(ctx, dir, c, entries[1:]); err == nil {
		t.Error("a ledger without its first entry was written")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := Write(ctx, dir+"/", c, entries); err != nil {
		t.Fatal(err)
	}
	if err := Write(ctx, dir, c, entries); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a folder: %v, want ErrExist", err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := script.Check(ctx, s); err != nil || n != 3 {
		t.Errorf("%d commits, %v, want 3", n, err)
	}
	if err := script.Advance(ctx, s); err != nil {
		t.Error(err)
	}
}
