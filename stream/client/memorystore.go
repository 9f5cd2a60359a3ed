package client

import (
	"iter"
	"maps"
	"sync"

	"github.com/panlearn/panlearn/stream"
)

// A MemoryStore is a Store that a process loses with its memory: for simulations, tests, and live streams whose events
// never come twice. It may be handed to a second Client after the first has ended.
type MemoryStore struct {
	mu     sync.Mutex
	pin    *Pin
	rounds map[uint64]stream.Hash
	events map[Key][]byte // encoded, so that nothing is shared with the caller
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{rounds: make(map[uint64]stream.Hash), events: make(map[Key][]byte)}
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
func (s *MemoryStore) Manifest(round uint64) (stream.Hash, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.rounds[round]
	return h, ok, nil
}

// Read implements Store.
func (s *MemoryStore) Read(keys []Key) ([]Participation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Participation, len(keys))
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
func (s *MemoryStore) Charged() iter.Seq2[Participation, error] {
	return func(yield func(Participation, error) bool) {
		s.mu.Lock()
		events := maps.Clone(s.events)
		s.mu.Unlock()
		for k, data := range events {
			p := Participation{Key: k}
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
		s.pin = &pin
	}
	maps.Copy(s.rounds, c.Rounds)
	for i, p := range c.Events {
		s.events[p.Key] = encoded[i]
	}
	return nil
}
