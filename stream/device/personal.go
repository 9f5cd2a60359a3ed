package device

import (
	"bytes"
	"context"

	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A personal is the token of a device of one person. begin gets it; known is closed after the fields are written.
type personal struct {
	known chan struct{}
	token []byte // nil: the issuer refused it, or err says more
	err   error  // of the store
}

// The keys, before keptAs, of what a device of one person keeps: its own draws and token, and, where a nonce stands
// otherwise, the kept key of the event that has the token. No event has them, for keys of events are hashes.
var ownDraws, ownEvent = participation.Key{}, participation.Key{1}

// begin gets the token of a device of one person, at once: this is when the device has agreed to the task. It returns at
// the latest when ctx ends.
func (g *granting) begin(ctx context.Context, of *grant.Task) {
	self := &event{record: participation.Record{Key: ownDraws}}
	g.insist(ctx, of, []*event{self}, func(told granted) {
		g.own.token, g.own.err = told.token, told.err
		close(g.own.known)
	})
}

// give gives the token of a device of one person to the event that has it, or else to the first of events, once it is
// known, and refuses the others: the stage counts it once.
func (g *granting) give(ctx context.Context, of *grant.Task, events []*event) {
	select {
	case <-ctx.Done():
		return
	case <-g.own.known:
	}
	for _, e := range events {
		token, err := g.own.token, g.own.err
		if token != nil {
			token, err = g.giveOne(of, keptAs(of, e.record.Key), token)
		}
		g.done.put(granted{event: e, token: token, err: err})
	}
}

// giveOne returns the token for an event that is kept under a key, and nil where another one has it.
func (g *granting) giveOne(of *grant.Task, kept participation.Key, token []byte) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
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
	return token, g.store.Write([]grants.Grant{has, drawn})
}
