// Package grants gets and keeps the tokens of people who report in a task with tokens: a [Store] of draws and the
// issuer's signatures, and [Source]s that ask the issuer.
//
// It promises that an issuer sees one message for each person, over crashes and lost replies: the draws that determine
// the message are durable before it leaves. The store must never be restored from an older copy.
package grants

import (
	"context"
	"sync"

	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// An Ask is a message to the issuer for one person.
type Ask struct {
	Person  string // as a gateway names the person; empty if the login identifies the person
	Message []byte // grant.RequestSize bytes
}

// An Answer is the answer of the issuer. The zero Answer means that there was none: the request is made again.
type Answer struct {
	Signature []byte // blind
	Refused   bool   // the person's token was given for another message
	Nobody    bool   // no person has the name that a gateway asked with
}

// A Source asks an issuer. It returns an answer for each message, or an error if the issuer answered none.
type Source interface {
	Sign(ctx context.Context, asks []Ask) ([]Answer, error)
}

// A Personal is a Source of one person, who is logged in, whatever name a request has. A device asks it when it has
// agreed to the task, and not when an event comes.
type Personal interface {
	Source
	// OnePerson does nothing: it marks a Source as Personal.
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
	// Write makes grants durable before it returns. A write that fails or is torn by a crash may leave the first grants.
	Write(all []Grant) error
}

// A MemoryStore is a Store in memory alone: for simulations, and for gateways to which nobody comes twice.
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
