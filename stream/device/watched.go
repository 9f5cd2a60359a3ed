package device

import (
	"iter"
	"sync"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A watchedStore is a device's store that others may look into, to learn how far an event is. Its methods may be called
// from any goroutine.
type watchedStore struct {
	mu      sync.Mutex
	store   participation.Store
	waiters map[participation.Key][]chan struct{} // guarded by mu; closed when a write of the key is durable
}

// watched makes a store that can be looked into. From now on it is the only user of s.
func watched(s participation.Store) *watchedStore {
	return &watchedStore{store: s, waiters: make(map[participation.Key][]chan struct{})}
}

// Pin implements participation.Store.
func (s *watchedStore) Pin() (participation.Pin, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Pin()
}

// Manifest implements participation.Store.
func (s *watchedStore) Manifest(round stream.Round) (stream.Hash, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Manifest(round)
}

// Read implements participation.Store.
func (s *watchedStore) Read(keys []participation.Key) ([]participation.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Read(keys)
}

// Charged implements participation.Store. Nothing else is done while it yields.
func (s *watchedStore) Charged() iter.Seq2[participation.Record, error] {
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

// Write implements participation.Store, and then wakes those that wait for one of its events.
func (s *watchedStore) Write(c participation.Change) error {
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

// one returns the stored record of a key.
func (s *watchedStore) one(key participation.Key) (participation.Record, error) {
	records, err := s.Read([]participation.Key{key})
	if err != nil {
		return participation.Record{}, err
	}
	return records[0], nil
}

// look returns the stored record of a key, and a channel that is closed after the next write of it. The caller calls
// forget when it no longer waits.
func (s *watchedStore) look(key participation.Key) (part participation.Record, written chan struct{}, err error) {
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

func (s *watchedStore) forget(key participation.Key, written chan struct{}) {
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
