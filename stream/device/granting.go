package device

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A granting gets the tokens of events in goroutines of the courier's. It looks a token up, or draws and stores a
// request and sends the same one until the issuer has replied. An event without a token waits outside of the queue: it
// asks for no place, draws nothing and is charged nothing.
//
// The time of a request does not reveal when an event came, more closely than to a second. A device of one person
// (grants.Personal) asks the issuer once it has agreed to the task, whether or not an event ever comes; the first event
// gets the token (personal.go). A gateway of many people asks on ticks, for all people who came since the last tick,
// ordered by hash: their reports leave in the order in which they came, and in that order the issuer and the stage
// together could link them.
type granting struct {
	source grants.Source
	store  grants.Store
	log    logger
	done   *answers[granted]
	began  time.Time // from which ticks are counted
	own    *personal // nil: the source is of many people

	mu   sync.Mutex
	pool []*event // guarded by mu: that wait for the tick, or for the token of the device's person
}

func newGranting(source grants.Source, store grants.Store, log logger) *granting {
	g := &granting{source: source, store: store, log: log, done: newAnswers[granted](), began: time.Now()}
	if _, ok := source.(grants.Personal); ok {
		g.own = &personal{known: make(chan struct{})}
	}
	return g
}

// askEvery is the time between two ticks on which a gateway asks.
const askEvery = time.Second

// A granted is the outcome of one event's request.
type granted struct {
	event   *event
	token   []byte // nil: there is none, for one of these errors
	refused error  // by the issuer; nil: another event has the token
	err     error  // of the store, which ends the device
}

// askAgain are the shortest and the longest time until an issuer that did not answer is asked again.
const askAgain, askAgainMost = time.Second, time.Minute

// errNoSource refuses a task with tokens on a device that has nobody to ask.
func errNoSource() error {
	return consent.Refuse("grants", "pass", "a task without, or somebody to ask: the issuer of the application (Settings.Grants)")
}

// errNoToken refuses an event whose person has no token to give.
func errNoToken() error {
	return consent.Refuse("grant", "none", "one of the issuer, which gave this person's token for another message: "+
		"on another device, before this one lost its store, or for another event")
}

// named returns the name by which an issuer is asked for the person of an event.
func (e *event) named() string {
	if e.person != "" {
		return e.person
	}
	return hex.EncodeToString(e.record.Key[:])
}

// keptAs returns the key under which a store keeps what is drawn for an event in one task under one issuer's key: 16
// bytes of SHA-256 of a label, the token input of a nonce of zeros, and the event's key. The key depends on the task
// because a store may serve several tasks, or outlive the participations: if a draw were used twice, the issuer would
// see two messages with one blinding, and could tell from either token to whom it belongs.
func keptAs(of *grant.Task, key participation.Key) (kept participation.Key) {
	h := sha256.New()
	h.Write([]byte("panlearn grant kept\x00"))
	h.Write(of.Input([grant.NonceSize]byte{}))
	h.Write(key[:])
	copy(kept[:], h.Sum(nil))
	return kept
}

// errNobody refuses an event whose key is not the name of a person.
func errNobody() error {
	return consent.Refuse("grant", "none", "a key that the issuer takes as a person's name: UTF-8, without blanks at its ends and "+
		"control characters")
}

// come has events wait for their tokens, in the order in which it is called. It reports whether request has to be
// called for them and for all that come until it looks.
func (g *granting) come(events []*event) (isFirst bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isFirst = len(g.pool) == 0
	g.pool = append(g.pool, events...)
	return isFirst
}

// request gets the tokens of the events that came, until ctx ends.
func (g *granting) request(ctx context.Context, of *grant.Task) {
	if g.own != nil {
		select {
		case <-ctx.Done():
			return
		case <-g.own.known:
		}
		g.give(of)
		return
	}
	next := g.began.Add((time.Since(g.began)/askEvery + 1) * askEvery)
	if Until(ctx, next) != nil {
		return
	}
	g.insist(ctx, of, g.all(), g.done.put)
}

// all takes the events that came.
func (g *granting) all() []*event {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.pool
	g.pool = nil
	return all
}

// insist gets the tokens of events now, asking again until all are answered or ctx ends. It calls tell with each
// result.
func (g *granting) insist(ctx context.Context, of *grant.Task, events []*event, tell func(granted)) {
	waiting := events
	for pause := askAgain; len(waiting) > 0; pause = min(2*pause, askAgainMost) {
		told, left, err := g.once(ctx, of, waiting)
		for _, t := range told {
			tell(t)
		}
		if err != nil {
			for _, e := range left {
				tell(granted{event: e, err: err})
			}
			return
		}
		if waiting = left; len(waiting) > 0 && Until(ctx, time.Now().Add(pause)) != nil {
			return
		}
	}
}

// once looks up, draws, stores and asks. It returns the results of events, in their order, and the events without an
// answer; after an error of the store, all events.
func (g *granting) once(ctx context.Context, of *grant.Task, events []*event) (told []granted, left []*event,
	err error) {
	keys := make([]participation.Key, len(events))
	for i, e := range events {
		keys[i] = keptAs(of, e.record.Key)
	}
	known, err := g.store.Look(keys)
	if err != nil {
		return nil, events, err
	}
	var drawn []grants.Grant
	var asked []int
	for i := range known {
		if !known[i].Drawn {
			known[i].Request, known[i].Drawn = grant.NewRequest(), true
			drawn = append(drawn, known[i])
		}
		if known[i].Token == nil {
			asked = append(asked, i)
		}
	}
	if len(drawn) > 0 { // before anybody is asked
		if err := g.store.Write(drawn); err != nil {
			return nil, events, err
		}
	}
	slices.SortFunc(asked, func(i, j int) int { return bytes.Compare(keys[i][:], keys[j][:]) })
	refused, signed, err := g.ask(ctx, of, events, known, asked)
	if err != nil {
		return nil, events, err
	}
	if len(signed) > 0 {
		if err := g.store.Write(signed); err != nil {
			return nil, events, err
		}
	}
	for i, e := range events {
		if known[i].Token != nil || refused[i] != nil {
			told = append(told, granted{event: e, token: known[i].Token, refused: refused[i]})
		} else {
			left = append(left, e)
		}
	}
	return told, left, nil
}

// ask asks the issuer for some of the events, in this order, and enters the tokens that it gave.
func (g *granting) ask(ctx context.Context, of *grant.Task, events []*event, known []grants.Grant, asked []int) (
	refused map[int]error, signed []grants.Grant, err error) {
	if len(asked) == 0 {
		return nil, nil, nil
	}
	var asks []grants.Ask
	var blinded []*grant.Blinded
	for _, i := range asked {
		b, err := of.Blind(known[i].Request)
		if err != nil {
			return nil, nil, err
		}
		asks, blinded = append(asks, grants.Ask{Person: events[i].named(), Message: b.Message()}), append(blinded, b)
	}
	answers, err := g.source.Sign(ctx, asks)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("the issuer gives no tokens: asking again", "error", err)
	}
	refused = make(map[int]error)
	for j, i := range asked[:min(len(asked), len(answers))] {
		switch a := answers[j]; {
		case a.Refused:
			refused[i] = errNoToken()
		case a.Nobody:
			refused[i] = errNobody()
		case a.Signature != nil:
			token, err := blinded[j].Finish(a.Signature)
			if err != nil {
				g.log.Warn("the issuer's answer is no token of this task: asking again", "error", err)
				continue
			}
			known[i].Token = token
			signed = append(signed, known[i])
		}
	}
	return refused, signed, nil
}

// line adds events to those that wait for a round: at once where the task has no tokens or theirs are known, else once
// they have one.
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

// takeGrants queues the events that have a token now, and refuses the events that will get none.
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
			var why *consent.RefusedError
			if g.refused == nil {
				g.refused = errNoToken()
			}
			if errors.As(g.refused, &why) {
				s.refuse([]refusal{{event: e, why: why}})
			}
			continue
		}
		e.grant = g.token
		s.queue.add(e)
	}
	return nil
}

// recallUngranted queues the events that wait for a token when the task is over, so that they get their outcome.
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

// appendGrants appends the tokens of a bundle's events to a plaintext, in a task with tokens.
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
