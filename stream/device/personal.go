package device

import (
	"bytes"
	"context"
	"sync"

	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A personal is the token of a device of one person. begin gets it; known is closed after the fields are written.
type personal struct {
	known   chan struct{}
	token   []byte // nil: there is none, for one of these errors
	refused error  // by the issuer
	err     error  // of the store

	giving sync.Mutex // held while events are given the token, one after the other
}

// The keys, before keptAs, of the records that a device of one person keeps: its own draws and token, and, in the field
// of the nonce, the kept key of the event that has the token. No event has them, for keys of events are hashes.
var ownDraws, ownEvent = participation.Key{}, participation.Key{1}

// begin gets the token of a device of one person, at once: this is when the device has agreed to the task. It returns
// at the latest when ctx ends.
func (g *granting) begin(ctx context.Context, of *grant.Task) {
	self := &event{record: participation.Record{Key: ownDraws}}
	g.insist(ctx, of, []*event{self}, func(told granted) {
		g.own.token, g.own.refused, g.own.err = told.token, told.refused, told.err
		close(g.own.known)
	})
}

// give gives the token of a device of one person, once it is known, to the event that has it already, or else to the
// first event that came. It refuses the other events, because the stage counts a token once.
func (g *granting) give(of *grant.Task) {
	g.own.giving.Lock()
	defer g.own.giving.Unlock()
	for _, e := range g.all() {
		token, err := g.own.token, g.own.err
		if token != nil {
			token, err = g.giveOne(of, keptAs(of, e.record.Key), token)
		}
		g.done.put(granted{event: e, token: token, refused: g.own.refused, err: err})
	}
}

// giveOne returns the token for an event that is kept under a key, or nil if another event has it. A torn write leaves
// its beginning: the token is kept under the event's key before the event is noted as its owner.
func (g *granting) giveOne(of *grant.Task, kept participation.Key, token []byte) ([]byte, error) {
	own := keptAs(of, ownEvent)
	known, err := g.store.Look([]participation.Key{own, keptAs(of, ownDraws)})
	if err != nil {
		return nil, err
	}
	has := known[0]
	if has.Drawn {
		if !bytes.Equal(has.Request.Nonce[:len(kept)], kept[:]) {
			return nil, nil
		}
		return token, nil
	}
	has.Drawn = true
	copy(has.Request.Nonce[:], kept[:])
	drawn := known[1]
	drawn.Key = kept
	return token, g.store.Write([]grants.Grant{drawn, has})
}
