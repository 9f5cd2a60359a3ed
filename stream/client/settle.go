package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// settleChunk bounds one write of settled events.
const settleChunk = 8192

// settle decides the events of a round whose Close is there, but for those whose answer is on its way.
func (g *gateway) settle(r *round) error {
	if r.closed == nil {
		return nil
	}
	return g.decide(r, func(p *participation.Record) { p.Decide(*r.closed) })
}

// decide settles events, durably, before anybody is told.
func (g *gateway) decide(r *round, by func(*participation.Record)) error {
	var events []*event
	flying := r.parcels[:0:0]
	for _, p := range r.parcels {
		if p.flying {
			flying = append(flying, p)
			continue
		}
		events = append(events, p.events...)
	}
	r.parcels, r.owed = flying, nil
	for len(events) > 0 {
		n := min(len(events), settleChunk)
		change := participation.Change{Events: make([]participation.Record, n)}
		for i, e := range events[:n] {
			by(&e.part)
			change.Events[i] = e.part
			delete(g.dirty, e)
		}
		if err := g.Store.Write(change); err != nil {
			for _, e := range events { // nobody knows what is stored; a restart finds out
				e.part.State = participation.Charged
				r.parcels = append(r.parcels, &parcel{events: []*event{e}})
			}
			return fmt.Errorf("settle events of round %d: %w", r.number, err)
		}
		if err := g.resolve(events[:n]); err != nil {
			return err
		}
		for _, e := range events[:n] {
			g.settledNow(e)
		}
		events = events[n:]
	}
	if len(r.parcels) == 0 && r != g.current {
		delete(g.rounds, r.number)
	}
	g.progress()
	return nil
}

// settledNow answers an event, or lets it wait for another round.
func (g *gateway) settledNow(e *event) {
	if !g.settled(e) && e.present {
		g.again, g.untidy = append(g.again, e), true
		return
	}
	delete(g.events, e.part.Key)
	if e.part.State != participation.Uncounted && g.stays(e) {
		return // nobody asked about it in this life yet; who does finds it in the store
	}
	g.answer(e)
}

// answer tells what became of an event.
func (g *gateway) answer(e *event) {
	g.tell(e, Outcome{State: e.part.Outcome(), Round: e.part.Draw.Round})
}

// tell answers all who asked about an event.
func (g *gateway) tell(e *event, o Outcome) {
	g.total.add(o)
	for _, tell := range e.answers {
		tell(o)
	}
	e.answers = nil
}

// finish ends waiting after the task's End: no round will come, and a Close that does not come in time never will.
func (g *gateway) finish() error {
	g.regroup()
	for _, e := range g.again {
		delete(g.events, e.part.Key)
		g.answer(e)
	}
	g.again = nil
	if time.Since(g.endedAt) < g.CloseWait {
		return nil
	}
	for _, r := range g.rounds {
		if r.closed == nil && len(r.parcels) > 0 {
			g.log.Warn("no Close came: the outcome stays unknown", "round", r.number)
			if err := g.decide(r, (*participation.Record).Abandon); err != nil {
				return err
			}
		}
	}
	return nil
}

// shutdown takes what has landed, stores it, and answers everybody: err is why the gateway ends, nil for a stop.
func (g *gateway) shutdown(err error) error {
	for {
		select {
		case f := <-g.landing:
			g.landed(f)
			continue
		default:
		}
		break
	}
	// A store that failed is not written again: what it holds is older, and so more careful.
	var refused *consent.RefusedError
	if err == nil || errors.As(err, &refused) {
		if failed := g.flush(); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	for _, o := range g.intake.close() {
		g.giveUp(&event{answers: []func(Outcome){o.answer}}, refused)
	}
	for _, e := range g.events {
		g.giveUp(e, refused)
	}
	clear(g.events)
	g.progress()
	return err
}

// give answers offers that were taken off the intake and cannot be looked up.
func (g *gateway) give(offers []*offer) {
	for _, o := range offers {
		g.giveUp(&event{answers: []func(Outcome){o.answer}}, nil)
	}
}

// giveUp answers an event whose outcome this process will not learn. One that is charged may be learned by the next.
func (g *gateway) giveUp(e *event, refused *consent.RefusedError) {
	if refused != nil && e.part.State == participation.Fresh {
		g.tell(e, Outcome{State: participation.Refused, Refused: refused})
		return
	}
	g.answer(e)
}
