package state

import (
	"bytes"
	"fmt"
)

// MaxBlobBytes bounds each byte field of a checkpoint (1 GiB); a whole commit must stay below Pebble's 4 GiB batch.
const MaxBlobBytes = 1 << 30

// A Cursor identifies the batch that was applied last.
type Cursor struct {
	TaskHash Hash   // the task that the whole folder belongs to
	Round    uint64 // last applied round, 0 before the first
	// BatchHash is the hash of the signed batch of Round as it was read, zero at round 0.
	BatchHash Hash
	// BatchSequence is the stream sequence of that batch, 0 if unknown. It serves only to detect a broker or a state
	// folder that was rolled back.
	BatchSequence uint64
}

// Checkpoint is the learner's whole state after Cursor.Round. All of it is post-processing of released noisy
// batches. Byte fields are opaque here; nil and empty mean the same.
type Checkpoint struct {
	Cursor Cursor
	// Ledger sums up the chain that this checkpoint belongs to.
	Ledger Ledger
	// Algorithm is the optimizer's whole state. It alone contains the model: a snapshot decodes it.
	Algorithm []byte
	// Task is the signed Task message, stored verbatim and unchanged for the life of the folder.
	Task []byte
	// NextRound is the signed message of round Cursor.Round+1, sent again verbatim after a restart. Empty when
	// the task has ended. Its round is the open reservation of the ledger.
	NextRound []byte
	// End is the signed End message. Exactly one of NextRound and End is present.
	End []byte
	// LastBatch holds the caller's summary of the batch of Cursor.Round (cohort, rejects); may be empty.
	LastBatch []byte
}

// IsZero reports whether c is the state of a folder without a commit.
func (c Checkpoint) IsZero() bool { return c.Equal(Checkpoint{}) }

// Ended reports whether no further round will be announced.
func (c Checkpoint) Ended() bool { return len(c.End) > 0 }

// Equal reports whether c and d encode to the same bytes.
func (c Checkpoint) Equal(d Checkpoint) bool {
	return c.Cursor == d.Cursor && c.Ledger == d.Ledger &&
		bytes.Equal(c.Algorithm, d.Algorithm) && bytes.Equal(c.Task, d.Task) &&
		bytes.Equal(c.NextRound, d.NextRound) && bytes.Equal(c.End, d.End) &&
		bytes.Equal(c.LastBatch, d.LastBatch)
}

// Clone returns a copy that shares no memory with c.
func (c Checkpoint) Clone() Checkpoint {
	for _, b := range c.blobs() {
		*b.bytes = bytes.Clone(*b.bytes)
	}
	return c
}

// validate refuses a checkpoint that no sequence of commits can produce, as far as the checkpoint alone shows it.
func (c Checkpoint) validate() error {
	if err := c.validateFields(); err != nil {
		return err
	}
	return c.validateLedger()
}

// validateLedger checks the ledger's sums against the cursor.
func (c Checkpoint) validateLedger() error {
	switch {
	case c.Ledger.Head.Length > 0 && c.Ledger.TaskHash != c.Cursor.TaskHash:
		return fmt.Errorf("checkpoint: its ledger is of task %s, want %s", c.Ledger.TaskHash, c.Cursor.TaskHash)
	case c.Ledger.IsOpen() == c.Ended():
		return fmt.Errorf("checkpoint: open reservation is %t, announced round is %t at round %d, want both or neither",
			c.Ledger.IsOpen(), !c.Ended(), c.Cursor.Round)
	case c.Ledger.settled() != c.Cursor.Round && !(c.Ended() && c.Ledger.settled() == c.Cursor.Round+1): // given up
		return fmt.Errorf("checkpoint: %d rounds are settled in the ledger, the cursor is at round %d", c.Ledger.settled(),
			c.Cursor.Round)
	}
	if err := c.Ledger.validate(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (c Checkpoint) validateFields() error {
	switch {
	case c.Cursor.TaskHash.IsZero():
		return fmt.Errorf("checkpoint: task hash is zero, want the hash of the task")
	case len(c.Task) == 0:
		return fmt.Errorf("checkpoint: task is empty, want the signed task message")
	case len(c.Algorithm) == 0:
		return fmt.Errorf("checkpoint: algorithm state is empty, want the optimizer's encoded state")
	case len(c.NextRound) == 0 && len(c.End) == 0:
		return fmt.Errorf("checkpoint: neither next round nor end is present at round %d, want exactly one", c.Cursor.Round)
	case len(c.NextRound) > 0 && len(c.End) > 0:
		return fmt.Errorf("checkpoint: both next round and end are present at round %d, want exactly one", c.Cursor.Round)
	case c.Cursor.Round == 0 && (!c.Cursor.BatchHash.IsZero() || c.Cursor.BatchSequence != 0):
		return fmt.Errorf("checkpoint: round 0 has a batch (hash %s, sequence %d), want none", c.Cursor.BatchHash,
			c.Cursor.BatchSequence)
	case c.Cursor.Round > 0 && c.Cursor.BatchHash.IsZero():
		return fmt.Errorf("checkpoint: round %d has a zero batch hash, want the hash of its batch", c.Cursor.Round)
	}
	for _, b := range c.blobs() {
		if len(*b.bytes) > MaxBlobBytes {
			return fmt.Errorf("checkpoint: %s has %d bytes, want at most %d", b.name, len(*b.bytes), MaxBlobBytes)
		}
	}
	return nil
}

type blob struct {
	name  string
	bytes *[]byte
}

// blobs lists the byte fields in the order in which they are encoded.
func (c *Checkpoint) blobs() []blob {
	return []blob{
		{"algorithm", &c.Algorithm},
		{"task", &c.Task},
		{"next round", &c.NextRound},
		{"end", &c.End},
		{"last batch", &c.LastBatch},
	}
}
