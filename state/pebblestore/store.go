package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/state"
)

const checkpointKey = "checkpoint"

// Store is a [state.Store] in one Pebble folder.
type Store struct {
	failure  *failure
	readOnly bool
	fs       vfs.FS // of the archive
	path     string
	tail     uint64 // see Options

	mu      sync.Mutex // held through every use of the fields below
	db      *pebble.DB // used inside failure.guard only
	lock    *pebble.Lock
	closed  bool
	loaded  bool             // current was read and checked
	current state.Checkpoint // committed; zero if empty
	// archived holds the sums of the entries that only the archive holds. The next entry is the first in Pebble.
	archived state.Ledger
	retry    uint64 // length of the ledger at which archiving is tried again, after it failed
}

var _ state.Store = (*Store)(nil)

// Load implements [state.Store]. It reads the checkpoint from disk and checks it against the entries that are not
// archived.
func (s *Store) Load(ctx context.Context) (state.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", err)
	}
	if err := s.load(); err != nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", err)
	}
	if s.current.IsZero() {
		return state.Checkpoint{}, fmt.Errorf("load: %w", state.ErrEmpty)
	}
	return s.current.Clone(), nil
}

// load fills current, with s.mu held.
func (s *Store) load() error {
	var c state.Checkpoint
	var archived state.Ledger
	err := s.failure.guard(func() error {
		return errors.Join(s.get(checkpointKey, c.UnmarshalBinary), s.get(archivedKey, archived.UnmarshalBinary))
	})
	if err != nil {
		return err
	}
	if err := c.VerifyLedger(archived, s.entries(0)); err != nil {
		return err
	}
	first := !s.loaded
	if s.current, s.archived, s.loaded = c, archived, true; first {
		s.checkArchive()
	}
	return nil
}

// get decodes the value of a key, if it is there, within failure.guard.
func (s *Store) get(key string, decode func([]byte) error) error {
	value, closer, err := s.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(decode(value), closer.Close())
}

// Commit implements [state.Store].
func (s *Store) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if s.readOnly {
		return fmt.Errorf("commit: %w", state.ErrReadOnly)
	}
	if !s.loaded {
		if err := s.load(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	if err := state.Next(s.current, next, entries, kept...); err != nil {
		return err
	}
	checkpoint, err := next.MarshalBinary()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		if lines[i], err = e.MarshalBinary(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	archived := s.archive()
	err = s.failure.guard(func() error { return s.write(checkpoint, entries, lines, archived, kept) })
	if err != nil {
		// After a failure inside Pebble only a new start shows what is on disk.
		return fmt.Errorf("commit of round %d: %w", next.Cursor.Round, s.failure.fail(err))
	}
	s.current, s.archived = next.Clone(), archived
	return nil
}

// write commits a checkpoint, its entries and what is kept, and forgets the entries that are archived.
func (s *Store) write(checkpoint []byte, entries []state.Entry, lines [][]byte, archived state.Ledger,
	kept []state.Kept) error {
	b := s.db.NewBatch()
	if archived != s.archived {
		sums, err := archived.MarshalBinary()
		if err != nil {
			return err
		}
		if err := b.Set([]byte(archivedKey), sums, nil); err != nil {
			return err
		}
		if err := b.DeleteRange(ledgerKey(0), ledgerKey(archived.Head.Length+1), nil); err != nil {
			return err
		}
	}
	for i, e := range entries {
		if err := b.Set(ledgerKey(e.Sequence), lines[i], nil); err != nil {
			return err
		}
	}
	if err := b.Set([]byte(checkpointKey), checkpoint, nil); err != nil {
		return err
	}
	if err := keep(b, kept); err != nil {
		return err
	}
	if err := s.db.Apply(b, pebble.Sync); err != nil {
		return err
	}
	return b.Close()
}

// Failed implements [state.Store].
func (s *Store) Failed() <-chan struct{} { return s.failure.ch }

// Close implements [state.Store]. After a failure it leaves Pebble and the folder's lock alone.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure.check(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if s.closed {
		return fmt.Errorf("close: %w", state.ErrClosed)
	}
	s.closed = true
	err := s.failure.guard(func() error {
		if s.readOnly {
			return s.db.Close()
		}
		// A table shows every damaged byte; the end of a log only looks like the end that a crash leaves.
		return errors.Join(s.db.Flush(), s.db.Close())
	})
	if failed := s.failure.check(); failed != nil {
		return fmt.Errorf("close: %w", failed)
	}
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// usable returns an error if the store is closed or failed, or ctx is done, with s.mu held.
func (s *Store) usable(ctx context.Context) error {
	switch err := s.failure.check(); {
	case err != nil:
		return err
	case s.closed:
		return state.ErrClosed
	}
	return ctx.Err()
}
