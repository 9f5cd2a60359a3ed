package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// AskBackup is answered by a state folder and its control socket, not on an HTTP port.
const AskBackup Question = "backup"

// An image is a checkpoint and the ledger that belongs to it, in their own encodings.
type image struct {
	Checkpoint []byte   `json:"checkpoint"`
	Ledger     [][]byte `json:"ledger"`
}

func (v View) image() (image, error) {
	var out image
	var err error
	if out.Checkpoint, err = v.Checkpoint.MarshalBinary(); err != nil {
		return out, err
	}
	for e, err := range v.Ledger.Entries() {
		if err != nil {
			return out, err
		}
		line, err := e.MarshalBinary()
		if err != nil {
			return out, err
		}
		out.Ledger = append(out.Ledger, line)
	}
	return out, nil
}

// parseImage reads an image as AskBackup answers it.
func parseImage(doc []byte) (state.Checkpoint, []state.Entry, error) {
	var i image
	var c state.Checkpoint
	if err := json.Unmarshal(doc, &i); err != nil {
		return c, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	if err := c.UnmarshalBinary(i.Checkpoint); err != nil {
		return c, nil, fmt.Errorf("the learner's answer: %w", err)
	}
	entries := make([]state.Entry, len(i.Ledger))
	for k, line := range i.Ledger {
		if err := entries[k].UnmarshalBinary(line); err != nil {
			return c, nil, fmt.Errorf("the learner's answer: %w", err)
		}
	}
	return c, entries, nil
}

// Backup writes what a state folder has committed to a new state folder, also while a learner holds the first, and answers
// the status of what it wrote. The copy is synced, and its ledger verified, before Backup returns; it replaces nothing.
func Backup(ctx context.Context, from, to string) (Status, error) {
	return copyState(ctx, from, to, pebblestore.Write)
}

func copyState(ctx context.Context, from, to string, write func(context.Context, string, state.Checkpoint, []state.Entry) error) (Status, error) {
	doc, err := Ask(ctx, Where{StateDir: from}, AskBackup)
	if err != nil {
		return Status{}, err
	}
	c, entries, err := parseImage(doc)
	if err != nil {
		return Status{}, err
	}
	if err := write(ctx, to, c, entries); err != nil {
		return Status{}, err
	}
	return statusOf(ctx, to)
}

// Restored is the state that Restore copied, and how the broker stands to it.
type Restored struct {
	Status
	Older   bool `json:"older"`   // the backup: the broker has gone on since, and the learner wants AcceptRollback
	Endless bool `json:"endless"` // the task has ended, and the broker, which may be older, does not say so; the learner puts that there
}

// Restore copies a backup to a state folder that is not there yet, or empty, once the records of the broker agree with it.
// Until then it changes nothing. A folder that is there is filled, not replaced: it may be a mount point. The backup of a task that
// has ended agrees with any broker of its past.
func Restore(ctx context.Context, backup string, c AtRest) (r Restored, err error) {
	write := pebblestore.WriteInto
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
