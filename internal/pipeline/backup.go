package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
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

// Backup writes what a state folder has committed to a new state folder, also while a learner holds the first, and answers
// the status of what it wrote. The copy is synced, and its ledger verified, before Backup returns; it replaces nothing.
func Backup(ctx context.Context, from, to string) (Status, error) {
	doc, err := Ask(ctx, Where{StateDir: from}, AskBackup)
	if err != nil {
		return Status{}, err
	}
	var i image
	if err := json.Unmarshal(doc, &i); err != nil {
		return Status{}, fmt.Errorf("the learner's answer: %w", err)
	}
	var c state.Checkpoint
	if err := c.UnmarshalBinary(i.Checkpoint); err != nil {
		return Status{}, fmt.Errorf("the learner's answer: %w", err)
	}
	entries := make([]state.Entry, len(i.Ledger))
	for k, line := range i.Ledger {
		if err := entries[k].UnmarshalBinary(line); err != nil {
			return Status{}, fmt.Errorf("the learner's answer: %w", err)
		}
	}
	if err := pebblestore.Write(ctx, to, c, entries); err != nil {
		return Status{}, err
	}
	return statusOf(ctx, to)
}

// Restore copies a backup to a state folder that is not there yet, or empty, once the records of the broker agree with it.
// older says that the broker has gone on since, which is copied too: the learner then wants AcceptRollback. Of c it uses what
// is for a folder that no learner holds; c.StateDir is the target.
func Restore(ctx context.Context, backup string, c FinishConfig) (s Status, older bool, err error) {
	if _, err := os.ReadDir(c.StateDir); err == nil {
		if err := os.Remove(c.StateDir); err != nil { // which takes an empty folder alone
			return s, false, fmt.Errorf("--state %s: %w: it is not empty", c.StateDir, fs.ErrExist)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s, false, fmt.Errorf("--state: %w", err)
	}
	err = c.check(ctx, backup)
	if older = errors.Is(err, service.ErrStateRolledBack); err != nil && !older {
		return s, false, err
	}
	s, err = Backup(ctx, backup, c.StateDir)
	return s, older, err
}

// check holds a folder at rest against the broker.
func (c FinishConfig) check(ctx context.Context, dir string) (err error) {
	identity, err := c.Identity()
	if err != nil {
		return err
	}
	store, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true, Logger: c.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	view, err := Look(ctx, store)
	if err != nil {
		return err
	}
	c.Broker.Log, c.Broker.Name = c.Logger, "panlearn learner "+view.Task.Name
	conn, err := connect(ctx, c.Broker, c.BrokerWait)
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := service.New(service.Config{Task: stream.Task(view.Task.Name), Records: conn, Store: store, Identity: identity,
		Build: BuildAlgorithm, Prepare: func() (*wire.Task, error) { return nil, state.ErrEmpty }, Logger: c.Logger})
	if err != nil {
		return err
	}
	return s.Check(ctx)
}
