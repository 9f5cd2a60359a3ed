package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/state"
)

// What may lie in a folder that is empty: the lock that its writer holds, and what a file system of its own puts there.
const (
	lockName  = "LOCK"
	foundName = "lost+found"
)

// unfinished is what FORMAT says until a folder that is filled file by file is whole. No build reads it as a format.
const unfinished = "panlearn state folder, not whole"

// Vacant says whether a folder is there and empty, so that WriteInto takes it: if not, its error wraps [fs.ErrNotExist] or
// [fs.ErrExist].
func Vacant(dir string) error {
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if e.Name() == lockName || e.Name() == foundName && e.IsDir() {
			continue
		}
		if _, err := ReadFormat(dir); errors.Is(err, errUnfinished) {
			return fmt.Errorf("%q: %w: %w", dir, fs.ErrExist, err)
		}
		return fmt.Errorf("%q: %w: it is not empty", dir, fs.ErrExist)
	}
	return nil
}

// WriteInto is Write into a folder that is there and empty. The folder stays what it is: a mount point, a link, of its own
// mode and owner. It cannot appear at once as that of Write does: until it is whole, no build opens it. After an error it is
// empty again; after a crash it has to be emptied first.
func WriteInto(ctx context.Context, dir string, c state.Checkpoint, entries []state.Entry) error {
	if err := writeInto(ctx, dir, c, entries, func(string) error { return nil }); err != nil {
		return fmt.Errorf("write state folder %q: %w", dir, err)
	}
	return nil
}

// writeInto calls before each change of the folder, by its name.
func writeInto(ctx context.Context, dir string, c state.Checkpoint, entries []state.Entry, before func(change string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if err := Vacant(dir); err != nil {
		return err
	}
	if err := c.VerifyLedger(state.Entries(entries)); err != nil {
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
		for i := len(made) - 1; err != nil && !whole && i >= 0; i-- { // what refuses the folder goes after all that it covers
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
	if err := fill(partial, c, entries); err != nil {
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
	_, err = f.WriteString(unfinished + "\n")
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
