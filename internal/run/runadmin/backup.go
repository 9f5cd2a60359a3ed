package runadmin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// Backup writes what a state folder has committed to a new state folder, also while a learner holds the first, and
// returns the status of what it wrote. The copy is synced, and its ledger verified, before Backup returns; it replaces
// nothing.
func Backup(ctx context.Context, from, to string) (statedir.Status, error) {
	return copyState(ctx, from, to, pebblestore.Write)
}

type writer func(ctx context.Context, dir string, c state.Checkpoint, entries iter.Seq2[state.Entry, error],
	kept iter.Seq2[state.Kept, error]) error

func copyState(ctx context.Context, from, to string, write writer) (statedir.Status, error) {
	err := statedir.Copy(ctx, statedir.Where{StateDir: from}, func(c state.Checkpoint, entries iter.Seq2[state.Entry,
		error], kept iter.Seq2[state.Kept, error]) error {
		return write(ctx, to, c, entries, kept)
	})
	if err != nil {
		return statedir.Status{}, err
	}
	return statedir.StatusOf(ctx, to)
}

// Restored describes the state that Restore copied, and how it compares with the broker's.
type Restored struct {
	statedir.Status
	Older bool `json:"older"` // the backup: the broker has gone on since, and the learner needs AcceptRollback
	// the task has ended, and the broker, which may be older, does not say so; the learner puts that there
	Endless bool `json:"endless"`
}

// Restore copies a backup to a state folder that is not there yet, or empty, once the records of the broker agree with
// it. Until then it changes nothing. A folder that is there is filled, not replaced: it may be a mount point. The
// backup of a task that has ended agrees with any broker of its past.
func Restore(ctx context.Context, backup string, c AtRest) (r Restored, err error) {
	write := writer(pebblestore.WriteInto)
	if err := pebblestore.Vacant(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		write = pebblestore.Write
	} else if err != nil {
		return r, fmt.Errorf("--state: %w", err)
	}
	open := func() (*pebblestore.Store, error) {
		return pebblestore.Open(backup, pebblestore.Options{ReadOnly: true, Logger: c.Logger})
	}
	err = c.service(ctx, open, nil, func(s *service.Service) (err error) {
		r.Endless, err = s.Check(ctx)
		return err
	})
	if r.Older = errors.Is(err, service.ErrStateRolledBack); err != nil && !r.Older {
		return r, err
	}
	r.Status, err = copyState(ctx, backup, c.StateDir, write)
	return r, err
}
