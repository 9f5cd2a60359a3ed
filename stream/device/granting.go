package device

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A granting gets the tokens of events in goroutines of the courier's: looked up, or drawn, stored, and asked for, the same
// message until the issuer has answered. An event without a token waits outside of the queue: it asks for no place, draws
// nothing and is charged nothing.
type granting struct {
	source grants.Source
	store  grants.Store
	log    logger
	done   *answers[granted]
}

// A granted is the outcome of one event's request.
type granted struct {
	event *event
	token []byte // nil: the issuer refused it, or failed says more
	err   error  // of the store, which ends the device
}

// askAgain are the shortest and the longest time until an issuer that did not answer is asked again.
const askAgain, askAgainMost = time.Second, time.Minute

// errNoSource refuses a task with tokens on a device that has nobody to ask.
func errNoSource() error {
	return consent.Refuse("grants", "pass", "a task without, or somebody to ask: the issuer of the application (Settings.Grants)")
}

// named returns the name by which an issuer is asked for the person of an event.
func (e *event) named() string {
	if e.person != "" {
		return e.person
	}
	return hex.EncodeToString(e.record.Key[:])
}

// keptAs returns the key under which a store keeps what is drawn for an event in one task under one issuer's key: 16 bytes
// of SHA-256 of a label, the token input of a nonce of zeros, and the event's key. A store may be given another task, where it
// is shared, or outlived the participations: with the same draws the issuer would see two messages of one blinding, which tell
// it whose the token is as soon as anybody shows it one.
func keptAs(of *grant.Task, key participation.Key) (kept participation.Key) {
	h := sha256.New()
	h.Write([]byte("panlearn grant kept\x00"))
	h.Write(of.Input([grant.NonceSize]byte{}))
	h.Write(key[:])
	copy(kept[:], h.Sum(nil))
	return kept
}

// request gets the tokens of events, until ctx ends.
func (g *granting) request(ctx context.Context, of *grant.Task, events []*event) {
	waiting := events
	for pause := askAgain; len(waiting) > 0; pause = min(2*pause, askAgainMost) {
		left, err := g.once(ctx, of, waiting)
		if err != nil {
			for _, e := range left {
				g.done.put(granted{event: e, err: err})
			}
			return
		}
		if waiting = left; len(waiting) > 0 && Until(ctx, time.Now().Add(pause)) != nil {
			return
		}
	}
}

// once looks up, draws, stores and asks, and returns the events that have no answer. After an error of the store it
// returns those that nobody was told of.
func (g *granting) once(ctx context.Context, of *grant.Task, events []*event) (left []*event, err error) {
	keys := make([]participation.Key, len(events))
	for i, e := range events {
		keys[i] = keptAs(of, e.record.Key)
	}
	known, err := g.store.Look(keys)
	if err != nil {
		return events, err
	}
	var drawn []grants.Grant
	for i := range known {
		if !known[i].Drawn {
			known[i].Request, known[i].Drawn = grant.NewRequest(), true
			drawn = append(drawn, known[i])
		}
	}
	if len(drawn) > 0 { // before anybody is asked
		if err := g.store.Write(drawn); err != nil {
			return events, err
		}
	}
	var asks []grants.Ask
	var blinded []*grant.Blinded
	var asked []int
	for i, k := range known {
		if k.Token != nil {
			g.done.put(granted{event: events[i], token: k.Token})
			continue
		}
		b, err := of.Blind(k.Request)
		if err != nil {
			return events, err
		}
		asks = append(asks, grants.Ask{Person: events[i].named(), Message: b.Message()})
		blinded, asked = append(blinded, b), append(asked, i)
	}
	if len(asks) == 0 {
		return nil, nil
	}
	answers, err := g.source.Sign(ctx, asks)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("the issuer gives no tokens: asking again", "error", err)
	}
	var signed []grants.Grant
	var told []granted
	for j, i := range asked {
		var a grants.Answer
		if j < len(answers) {
			a = answers[j]
		}
		token, err := []byte(nil), error(nil)
		switch {
		case a.Refused:
			told = append(told, granted{event: events[i]})
			continue
		case a.Signature != nil:
			if token, err = blinded[j].Finish(a.Signature); err != nil {
				g.log.Warn("the issuer's answer is no token of this task: asking again", "error", err)
			}
		}
		if token == nil {
			left = append(left, events[i])
			continue
		}
		known[i].Token = token
		signed, told = append(signed, known[i]), append(told, granted{event: events[i], token: token})
	}
	if len(signed) > 0 {
		if err := g.store.Write(signed); err != nil {
			for _, t := range told {
				left = append(left, t.event)
			}
			return left, err
		}
	}
	for _, t := range told {
		g.done.put(t)
	}
	return left, nil
}

// line adds events to those that wait for a round: at once where the task has no tokens or theirs are known, else once they
// have one.
func (c *core) line(events ...*event) {
	var without []*event
	for _, e := range events {
		if c.contract.tokens == nil || e.grant != nil {
			c.queue.add(e)
			continue
		}
		c.ungranted[e.record.Key] = e
		without = append(without, e)
	}
	if len(without) > 0 {
		c.do(effect{call: askIssuer, events: without})
	}
}

// takeGrants lines up the events whose tokens came, and refuses those of people whose token was given for another message.
func (s *sender) takeGrants(all []granted) error {
	for _, g := range all {
		e := s.ungranted[g.event.record.Key]
		if e != g.event {
			continue // it was answered meanwhile
		}
		if g.err != nil {
			return fmt.Errorf("grants: %w", g.err)
		}
		delete(s.ungranted, e.record.Key)
		if g.token == nil {
			err := consent.Refuse("grant", "none", "one of the issuer, which gave this person's token for another message: "+
				"on another device, or before this one lost its store")
			var why *consent.RefusedError
			if errors.As(err, &why) {
				s.refuse([]refusal{{event: e, why: why}})
			}
			continue
		}
		e.grant = g.token
		s.queue.add(e)
	}
	return nil
}

// recallUngranted lines up the events that wait for a token when the task is over, so that they are answered.
func (c *core) recallUngranted() {
	for k, e := range c.ungranted {
		delete(c.ungranted, k)
		c.queue.add(e)
	}
}

// loadGrants takes up the tokens of what an earlier process left charged.
func (l *loop) loadGrants() error {
	if l.GrantStore == nil || l.contract.tokens == nil {
		return nil
	}
	keys := slices.Collect(maps.Keys(l.core.events))
	kept := make([]participation.Key, len(keys))
	for i, k := range keys {
		kept[i] = keptAs(l.contract.tokens, k)
	}
	known, err := l.GrantStore.Look(kept)
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	for i, k := range keys {
		l.core.events[k].grant = known[i].Token
	}
	return nil
}

// appendGrants appends the tokens of a bundle's events to a plaintext, in a task that asks for them.
func (c *contract) appendGrants(plaintext []byte, events []*event) ([]byte, error) {
	if c.tokens == nil {
		return plaintext, nil
	}
	for _, e := range events {
		if len(e.grant) != grant.Size {
			return nil, errors.New("an event was charged, and its token is lost: the store of grants is not the one it had")
		}
		plaintext = grow(plaintext, e.grant)
	}
	return plaintext, nil
}
