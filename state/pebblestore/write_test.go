package pebblestore

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// image returns a script, and the checkpoint, ledger and kept rounds after three commits of it.
func image(t *testing.T) (script storetest.Script, c state.Checkpoint, entries []state.Entry, kept iter.Seq2[state.Kept,
	error]) {
	t.Helper()
	ctx := t.Context()
	script = storetest.Script{Rounds: 4}
	from := storetest.NewMemory()
	for range 3 {
		if err := script.Advance(ctx, from); err != nil {
			t.Fatal(err)
		}
	}
	c, err := storetest.Read(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range from.Ledger(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return script, c, entries, func(yield func(state.Kept, error) bool) {
		for r := range c.Cursor.Round {
			if !yield(script.Kept(r + 1)[0], nil) {
				return
			}
		}
	}
}

// TestWrite makes a folder that goes on as the one it was taken from; it replaces nothing, and leaves nothing of a
// ledger that does not belong to the checkpoint.
func TestWrite(t *testing.T) {
	ctx := t.Context()
	script, c, entries, kept := image(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "copy")
	if err := Write(ctx, dir, c, state.Entries(entries[1:]), kept); err == nil {
		t.Error("a ledger without its first entry was written")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := Write(ctx, dir+"/", c, state.Entries(entries), kept); err != nil {
		t.Fatal(err)
	}
	if err := Write(ctx, dir, c, state.Entries(entries), kept); !errors.Is(err, fs.ErrExist) {
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

// goesOn returns an error unless a folder goes on as the one of image.
func goesOn(ctx context.Context, script storetest.Script, dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	n, err := script.Check(ctx, s)
	if err == nil && n != 3 {
		err = errors.New("not three commits")
	}
	if err == nil {
		err = script.Advance(ctx, s)
	}
	return errors.Join(err, s.Close())
}

// TestWriteInto fills a folder that stays the same one, whatever else a file system has there, and refuses one that is
// not empty.
func TestWriteInto(t *testing.T) {
	script, c, entries, kept := image(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	was, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteInto(t.Context(), link, c, state.Entries(entries[1:]), kept); err == nil || Vacant(dir) != nil {
		t.Errorf("a ledger without its first entry: %v", err)
	}
	if err := WriteInto(t.Context(), link, c, state.Entries(entries), kept); err != nil {
		t.Fatal(err)
	}
	is, err := os.Lstat(dir)
	if to, failed := os.Readlink(link); err != nil || failed != nil || to != dir || !os.SameFile(was, is) ||
		is.Mode() != was.Mode() {
		t.Errorf("another folder: %v, %v, %v", is, err, failed)
	}
	if err := WriteInto(t.Context(), dir, c, state.Entries(entries), kept); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a folder: %v, want ErrExist", err)
	}
	if err := WriteInto(t.Context(), filepath.Join(dir, "no"), c, state.Entries(entries), kept); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("into nothing: %v, want ErrNotExist", err)
	}
	if err := goesOn(t.Context(), script, dir); err != nil {
		t.Error(err)
	}
}

// TestWriteIntoLocked: nothing is written where somebody else begins.
func TestWriteIntoLocked(t *testing.T) {
	_, c, entries, kept := image(t)
	dir := t.TempDir()
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteInto(t.Context(), dir, c, state.Entries(entries), kept); !errors.Is(err, state.ErrLocked) ||
		listed(t, dir) != "/LOCK" {
		t.Errorf("%v, and %s is there", err, listed(t, dir))
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWriteIntoDies lets the writer die, or fail, before each change that it makes. A folder of which some is there is
// refused, by those who write and those who read, and not touched; after a failure it is as empty as it was.
func TestWriteIntoDies(t *testing.T) {
	script, c, entries, kept := image(t)
	ctx := t.Context()
	died := errors.New("died")
	for k, done := 1, false; !done; k++ {
		at, dir := "", t.TempDir()
		n := 0
		stop := func(change string) bool {
			if n++; n == k {
				at = change
			}
			return n == k
		}
		func() {
			defer func() {
				if r := recover(); r != nil && r != died {
					panic(r)
				}
			}()
			if err := writeInto(ctx, dir, c, state.Entries(entries), kept, func(change string) error {
				if stop(change) {
					panic(died)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}()
		if done = at == ""; done {
			if err := goesOn(ctx, script, dir); err != nil || k < 8 {
				t.Errorf("%d changes, then %v", k-1, err)
			}
			break
		}
		before := listed(t, dir)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			if at == "refuse" {
				break // nothing is there yet
			}
			if s, err := Open(dir, o); err == nil {
				t.Errorf("before %q: the folder is opened, read-only %v", at, o.ReadOnly)
				s.Close()
			} else if !errors.Is(err, errUnfinished) || errors.Is(err, state.ErrEmpty) {
				t.Errorf("before %q: %v", at, err)
			}
		}
		if err := Vacant(dir); at != "refuse" && (!errors.Is(err, fs.ErrExist) ||
			!strings.Contains(err.Error(), "empty the folder")) {
			t.Errorf("before %q: %v", at, err)
		}
		if after := listed(t, dir); after != before {
			t.Errorf("before %q: there was %s, now there is %s", at, before, after)
		}

		n = 0
		dir = t.TempDir()
		if err := writeInto(ctx, dir, c, state.Entries(entries), kept, func(change string) error {
			if stop(change) {
				return died
			}
			return nil
		}); !errors.Is(err, died) {
			t.Errorf("before %q: %v", at, err)
		}
		if left := listed(t, dir); left != "" {
			t.Errorf("before %q: %s is left", at, left)
		}
	}
}

// listed returns all that lies in a folder.
func listed(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
