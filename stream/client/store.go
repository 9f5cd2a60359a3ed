package client

import (
	"iter"

	"github.com/panlearn/panlearn/stream"
)

// A Pin is what a store belongs to; it is written once, before anything of the first event is.
type Pin struct {
	Task   stream.Hash // task hash
	Source string      // where the events come from, as Config.Source; empty for a live stream
}

// A Change is one atomic write.
type Change struct {
	Pin    *Pin                   // written where there is none yet
	Rounds map[uint64]stream.Hash // manifest hashes of rounds that were joined
	Events []Participation        // each replaces what the store had for its key
}

// A Store remembers who took part in one task. Losing it, or going back to an older copy of it, lets events take part
// again: it must not be restored from a backup.
//
// A charged event is stored with its counts, because retries must send the same ones. They are the noisy report
// of one user and belong to nobody else; a store deletes them when the event is settled.
//
// Calls come from one goroutine.
type Store interface {
	// Pin answers the pin, or false where nothing was written yet.
	Pin() (Pin, bool, error)

	// Manifest answers the manifest hash of a round that was joined, or false.
	Manifest(round uint64) (stream.Hash, bool, error)

	// Read answers the participation of every key, in order; a Fresh one where it has none.
	Read(keys []Key) ([]Participation, error)

	// Charged yields all charged events. Nothing is written while it runs.
	Charged() iter.Seq2[Participation, error]

	// Write makes a change durable, all of it or none of it, before it returns. After an error nobody knows whether it
	// was written: the caller stops using the store, and sends nothing that the change would have covered.
	Write(Change) error
}
