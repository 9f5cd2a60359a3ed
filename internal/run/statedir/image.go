package statedir

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/panlearn/panlearn/state"
)

// AskBackup is answered by a state folder and its control socket, not on an HTTP port.
const AskBackup Question = "backup"

// An Image is a checkpoint and the ledger that belongs to it, in their own encodings: what AskBackup returns.
type Image struct {
	Checkpoint []byte   `json:"checkpoint"`
	Ledger     [][]byte `json:"ledger"`
}

// Image returns what was committed, byte for byte.
func (v View) Image() (Image, error) {
	var out Image
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

// Copy returns what a state folder has committed, also while a learner holds it, and the number of bytes that this took as a document.
func Copy(ctx context.Context, dir string) (c state.Checkpoint, entries []state.Entry, size int, err error) {
	doc, err := Ask(ctx, Where{StateDir: dir}, AskBackup)
	if err != nil {
		return c, nil, 0, err
	}
	var i Image
	err = json.Unmarshal(doc, &i)
	if err == nil {
		err = c.UnmarshalBinary(i.Checkpoint)
	}
	entries = make([]state.Entry, len(i.Ledger))
	for k, line := range i.Ledger {
		if err == nil {
			err = entries[k].UnmarshalBinary(line)
		}
	}
	if err != nil {
		return c, nil, 0, fmt.Errorf("the learner's answer: %w", err)
	}
	return c, entries, len(doc), nil
}
