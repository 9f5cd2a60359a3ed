package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/state"
)

// Write makes a state folder that holds a checkpoint and the ledger that belongs to it, on the operating system's files. dir
// must not exist. The folder appears under its name when it is synced, has been opened again, and its ledger verifies; after
// an error nothing is left.
func Write(ctx context.Context, dir string, c state.Checkpoint, entries []state.Entry) (err error) {
	fail := func(err error) error { return fmt.Errorf("write state folder %q: %w", dir, err) }
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fail(errors.Join(err, fs.ErrExist))
	}
	if err := c.VerifyLedger(state.Entries(entries)); err != nil {
		return fail(err)
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
	if err := fill(partial, c, entries); err != nil {
		return fail(err)
	}
	if err := same(ctx, partial, c); err != nil {
		return fail(err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return fail(err)
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
		return fail(err)
	}
	return nil
}

func fill(dir string, c state.Checkpoint, entries []state.Entry) error {
	checkpoint, err := c.MarshalBinary()
	if err != nil {
		return err
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		if lines[i], err = e.MarshalBinary(); err != nil {
			return err
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return errors.Join(s.failure.guard(func() error { return s.write(checkpoint, entries, lines) }), s.Close())
}

// same opens a folder, which verifies its ledger, and compares.
func same(ctx context.Context, dir string, c state.Checkpoint) error {
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	got, err := s.Load(ctx)
	if err == nil && !got.Equal(c) {
		err = errors.New("what was written reads back as something else")
	}
	return errors.Join(err, s.Close())
}
