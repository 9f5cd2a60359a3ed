package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

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
