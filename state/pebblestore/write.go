package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/state"
)

// Write makes a state folder that holds a checkpoint and the ledger that belongs to it, on the operating system's
// files. dir must not exist. The entries, from the first on, are read once, and all go to the archive; then what is
// kept of rounds is read once. The folder appears under its name when it is synced, has been opened again, and its
// ledger verifies; after an error nothing is left.
func Write(ctx context.Context, dir string, c state.Checkpoint, entries iter.Seq2[state.Entry, error],
	kept iter.Seq2[state.Kept, error]) (err error) {
	fail := func(err error) error { return fmt.Errorf("write state folder %q: %w", dir, err) }
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fail(errors.Join(err, fs.ErrExist))
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-") // mode 0700
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(partial)
		}
	}()
	if err := fill(partial, c, entries, kept); err != nil {
		return fail(err)
	}
	if err := same(ctx, partial, c); err != nil {
		return fail(err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return fail(err)
	}
	if err := disk.SyncFolder(filepath.Dir(dir)); err != nil {
		return fail(err)
	}
	return nil
}

func fill(dir string, c state.Checkpoint, entries iter.Seq2[state.Entry, error], kept iter.Seq2[state.Kept,
	error]) error {
	checkpoint, err := c.MarshalBinary()
	if err != nil {
		return err
	}
	ledger, err := writeArchive(vfs.Default, dir, entries)
	if err == nil {
		err = c.VerifyLedger(ledger, state.Entries(nil))
	}
	if err != nil {
		return err
	}
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return errors.Join(s.failure.guard(func() error { return s.fill(checkpoint, ledger, kept) }), s.Close())
}

// same opens a folder, verifies its whole ledger, and compares.
func same(ctx context.Context, dir string, c state.Checkpoint) error {
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	got, err := s.Load(ctx)
	if err == nil && !got.Equal(c) {
		err = errors.New("what was written reads back as something else")
	}
	if err == nil {
		err = c.VerifyLedger(state.Ledger{}, s.Ledger(ctx))
	}
	return errors.Join(err, s.Close())
}

// Names that an empty folder may contain: the lock of its writer, and the folder that a separate file system creates.
const (
	lockName  = "LOCK"
	foundName = "lost+found"
)

// Vacant returns nil if a folder exists and is empty, so that WriteInto takes it; otherwise its error wraps
// [fs.ErrNotExist] or [fs.ErrExist].
func Vacant(dir string) error {
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if e.Name() == lockName || e.Name() == foundName && e.IsDir() {
			continue
		}
		if err := CheckFormat(dir); errors.Is(err, errUnfinished) {
			return fmt.Errorf("%q: %w: %w", dir, fs.ErrExist, err)
		}
		return fmt.Errorf("%q: %w: it is not empty", dir, fs.ErrExist)
	}
	return nil
}

// WriteInto works like Write, but into an existing empty folder. It keeps the folder itself: a mount point or a link,
// with its mode and owner. It is not atomic like Write, but no build opens the folder until it is complete. After an
// error the folder is empty again; after a crash it must be emptied first.
func WriteInto(ctx context.Context, dir string, c state.Checkpoint, entries iter.Seq2[state.Entry, error],
	kept iter.Seq2[state.Kept, error]) error {
	if err := writeInto(ctx, dir, c, entries, kept, func(string) error { return nil }); err != nil {
		return fmt.Errorf("write state folder %q: %w", dir, err)
	}
	return nil
}

// writeInto calls before each change of the folder, by its name.
func writeInto(ctx context.Context, dir string, c state.Checkpoint, entries iter.Seq2[state.Entry, error],
	kept iter.Seq2[state.Kept, error], before func(change string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if err := Vacant(dir); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		if isLocked(err) {
			err = fmt.Errorf("%w (%v)", state.ErrLocked, err)
		}
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := Vacant(dir); err != nil { // now that nobody else begins here
		return err
	}
	format, partial := filepath.Join(dir, formatName), filepath.Join(dir, ".partial")
	made, whole := []string{filepath.Join(dir, lockName)}, false
	defer func() {
		for i := len(made) - 1; err != nil && !whole && i >= 0; i-- { // FORMAT, which refuses the folder, goes last
			err = errors.Join(err, os.RemoveAll(made[i]))
		}
	}()
	change := func(what string, path string, do func() error) error {
		if err := before(what); err != nil {
			return err
		}
		made = append(made, path)
		return do()
	}
	if err := change("refuse", format, func() error { return refuse(format) }); err != nil {
		return err
	}
	if err := syncFolder(vfs.Default, dir); err != nil {
		return err
	}
	if err := change("fill", partial, func() error { return os.Mkdir(partial, 0o700) }); err != nil {
		return err
	}
	if err := fill(partial, c, entries, kept); err != nil {
		return err
	}
	if err := same(ctx, partial, c); err != nil {
		return err
	}
	files, err := os.ReadDir(partial)
	if err != nil {
		return err
	}
	for _, f := range files {
		from, to := filepath.Join(partial, f.Name()), filepath.Join(dir, f.Name())
		switch f.Name() {
		case lockName:
			continue
		case formatName:
			to += ".new"
		}
		if err := change("move "+f.Name(), to, func() error { return os.Rename(from, to) }); err != nil {
			return err
		}
	}
	if err := change("tidy", partial, func() error { return os.RemoveAll(partial) }); err != nil {
		return err
	}
	if err := syncFolder(vfs.Default, dir); err != nil {
		return err
	}
	if err := change("permit", format, func() error { return os.Rename(format+".new", format) }); err != nil {
		return err
	}
	whole = true
	return syncFolder(vfs.Default, dir)
}

// refuse writes a FORMAT that no build reads.
func refuse(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return disk.Put(f, []byte(unfinished+"\n"))
}
