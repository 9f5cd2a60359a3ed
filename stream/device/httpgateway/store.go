package httpgateway

import (
	"iter"
	"sync"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A Store is a client's store that the gateway may look into, to answer how far an event is. Its methods may be called
// from any goroutine.
type Store struct {
	mu      sync.Mutex
	store   participation.Store
	waiters map[participation.Key][]chan struct{} // guarded by mu; closed when a write of the key is durable
}

// Watch makes a store that can be looked into. From now on it is the only user of s.
func Watch(s participation.Store) *Store {
	return &Store{store: s, waiters: make(map[participation.Key][]chan struct{})}
}

// Pin implements participation.Store.
func (s *Store) Pin() (participation.Pin, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Pin()
}

// Manifest implements participation.Store.
func (s *Store) Manifest(round stream.Round) (stream.Hash, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Manifest(round)
}

// Read implements participation.Store.
func (s *Store) Read(keys []participation.Key) ([]participation.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Read(keys)
}

// Charged implements participation.Store. Nothing else is done while it yields.
func (s *Store) Charged() iter.Seq2[participation.Record, error] {
	return func(yield func(participation.Record, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for part, err := range s.store.Charged() {
			if !yield(part, err) {
				return
			}
		}
	}
}

// Write implements participation.Store, and then tells those that wait for one of its events.
func (s *Store) Write(c participation.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.store.Write(c); err != nil {
		return err
	}
	for _, e := range c.Events {
		for _, w := range s.waiters[e.Key] {
			close(w)
		}
		delete(s.waiters, e.Key)
	}
	return nil
}

// look returns the stored record of a key, and a channel that is closed after the next write of it. The caller calls
// forget when it no longer waits.
func (s *Store) look(key participation.Key) (part participation.Record, written chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, err := s.store.Read([]participation.Key{key})
	if err != nil {
		return participation.Record{}, nil, err
	}
	written = make(chan struct{})
	s.waiters[key] = append(s.waiters[key], written)
	return parts[0], written, nil
}

func (s *Store) forget(key participation.Key, written chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []chan struct{}
	for _, w := range s.waiters[key] {
		if w != written {
			rest = append(rest, w)
		}
	}
	if s.waiters[key] = rest; len(rest) == 0 {
		delete(s.waiters, key)
	}
}
