package participation

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/panlearn/panlearn/stream"
)

// A Pin ties a store to a task and a source of events. It is written once, before anything of the first event.
type Pin struct {
	Task   stream.Hash // task hash
	Source string      // where the events come from, see device.Settings; empty for a live stream
	Order  [32]byte    // seed of the order of shuffled rows, from the system's generator: a later run takes the same order
	// Units and Trials describe an organisation's reports: how many rows a report is about and, for each phase of
	// the plan, the trials of the noise that hides them. Every draw uses them, whichever process makes it. They
	// are 0 and nil where users report for themselves.
	Units  uint64
	Trials []uint64
	// People lists by name the people of an organisation that takes part with each person in one round: the first Units of
	// them are the first block, and so on. Nobody is in another block than here, and a person who is not listed is in
	// none.
	People []Key
}

// A Change is one atomic write.
type Change struct {
	Pin    *Pin                         // written where there is none yet
	Rounds map[stream.Round]stream.Hash // manifest hashes of rounds that were joined
	Events []Record                     // each replaces what the store had for its key
}

// A Store remembers who took part in one task. Losing it, or going back to an older copy of it, lets events take part
// again: it must not be restored from a backup.
//
// A charged event is stored with its counts, because retries must send the same ones. They are the noisy report
// of one user and belong to nobody else; a store deletes them when the event is settled.
//
// Calls come from one goroutine.
type Store interface {
	// Pin returns the pin, or false where nothing was written yet.
	Pin() (Pin, bool, error)

	// Manifest returns the manifest hash of a round that was joined, or false.
	Manifest(round stream.Round) (stream.Hash, bool, error)

	// Read returns the record of every key, in order; a Fresh one where it has none.
	Read(keys []Key) ([]Record, error)

	// Charged yields all charged events. Nothing is written while it runs.
	Charged() iter.Seq2[Record, error]

	// Write makes a change durable, all of it or none of it, before it returns. After an error nobody knows whether it
	// was written: the caller stops using the store, and sends nothing that the change would have covered.
	Write(Change) error
}

// A MemoryStore is a Store in memory alone: for simulations, tests, and live streams in which no event comes twice. A
// second client may use it after the first has ended.
type MemoryStore struct {
	mu     sync.Mutex
	pin    *Pin
	rounds map[stream.Round]stream.Hash
	events map[Key][]byte // encoded, so that nothing is shared with the caller
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{rounds: make(map[stream.Round]stream.Hash), events: make(map[Key][]byte)}
}

// Pin implements Store.
func (s *MemoryStore) Pin() (Pin, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pin == nil {
		return Pin{}, false, nil
	}
	return *s.pin, true, nil
}

// Manifest implements Store.
func (s *MemoryStore) Manifest(round stream.Round) (stream.Hash, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.rounds[round]
	return h, ok, nil
}

// Read implements Store.
func (s *MemoryStore) Read(keys []Key) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Record, len(keys))
	for i, k := range keys {
		out[i].Key = k
		if data, ok := s.events[k]; ok {
			if err := out[i].UnmarshalBinary(data); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Charged implements Store.
func (s *MemoryStore) Charged() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s.mu.Lock()
		events := maps.Clone(s.events)
		s.mu.Unlock()
		for k, data := range events {
			p := Record{Key: k}
			err := p.UnmarshalBinary(data)
			if err == nil && p.State != Charged {
				continue
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// Write implements Store.
func (s *MemoryStore) Write(c Change) error {
	encoded := make([][]byte, len(c.Events))
	for i, p := range c.Events {
		var err error
		if encoded[i], err = p.MarshalBinary(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Pin != nil && s.pin == nil {
		pin := *c.Pin
		pin.Trials, pin.People = slices.Clone(pin.Trials), slices.Clone(pin.People)
		s.pin = &pin
	}
	maps.Copy(s.rounds, c.Rounds)
	for i, p := range c.Events {
		s.events[p.Key] = encoded[i]
	}
	return nil
}
