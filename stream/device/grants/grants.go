// Package grants keeps and gets the tokens of those who report in a task that asks for them: a [Store] of what was
// drawn and what the issuer signed, and [Source]s that ask it.
//
// It promises that an issuer is asked for one message of a person, over crashes and lost answers: what the message
// follows from is durable before it leaves. The store is never put back from an older copy.
package grants

import (
	"context"
	"sync"

	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// An Ask is a message to the issuer for one person.
type Ask struct {
	Person  string // as a gateway names the person; empty where a login tells who asks
	Message []byte // grant.RequestSize bytes
}

// An Answer is the issuer's. No field means that it gave none: it is asked again.
type Answer struct {
	Signature []byte // blind
	Refused   bool   // the person's token was given for another message
	Nobody    bool   // no person has the name that a gateway asked with
}

// A Source asks an issuer. It returns an answer for each message, or an error where none was answered.
type Source interface {
	Sign(ctx context.Context, asks []Ask) ([]Answer, error)
}

// A Personal is a Source of one person, the one who is logged in, whatever name it is asked with. A device asks it when
// it agreed to the task, and not when an event comes.
type Personal interface {
	Source
	// OnePerson does nothing: it tells this Source from others.
	OnePerson()
}

// A Grant is one person's.
type Grant struct {
	Key     participation.Key
	Request grant.Request
	Drawn   bool   // Request is; false of a key that a store does not know
	Token   []byte // grant.Size bytes; nil: not signed yet
}

// A Store remembers grants. Its methods may be called from any goroutine.
type Store interface {
	// Look returns what is known of each key, in order.
	Look(keys []participation.Key) ([]Grant, error)
	// Write makes grants durable before it returns. Of a write that fails or is torn by a crash the first grants may
	// stand.
	Write(all []Grant) error
}

// A MemoryStore is a Store that a process loses with its memory: for simulations, and for gateways whose people never
// come again.
type MemoryStore struct {
	mu  sync.Mutex
	all map[participation.Key]Grant // guarded by mu
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{all: map[participation.Key]Grant{}} }

// Look implements Store.
func (s *MemoryStore) Look(keys []participation.Key) ([]Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Grant, len(keys))
	for i, k := range keys {
		out[i] = s.all[k]
		out[i].Key = k
	}
	return out, nil
}

// Write implements Store.
func (s *MemoryStore) Write(all []Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range all {
		s.all[g.Key] = g
	}
	return nil
}

// Len returns how many people are known.
func (s *MemoryStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
