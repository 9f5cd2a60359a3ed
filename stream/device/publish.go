package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// join charges waiting events to the newest round, with a draw of their own each, and only then sends them.
func (l *loop) join(ctx context.Context, events []*event) error {
	r := l.current
	events, refused, err := l.accounts.charge(events, r)
	if err != nil {
		return err
	}
	l.refuse(refused)
	if len(events) == 0 {
		return nil
	}
	if err := l.reports.draw(ctx, events, l.current); err != nil {
		return err
	}
	var bundles []*bundle
	for members := range slices.Chunk(events, min(l.Bundle, int(r.place.Phase.Mechanism.MaxBundle))) {
		id := l.chance.id()
		for place, e := range members {
			d := *e.early
			e.early, d.Bundle, d.Place = nil, id, uint32(place)
			if err := e.record.Join(d); err != nil {
				return err
			}
			if d.Final && d.Most <= 1 {
				e.release()
			}
		}
		bundles = append(bundles, &bundle{events: members})
	}
	r.joined += uint64(len(events))
	r.bundles = append(r.bundles, bundles...)
	return l.send(r, bundles)
}

// refuse tells users who may not pay for a round why the policy refuses.
func (l *loop) refuse(refused []refusal) {
	for _, r := range refused {
		delete(l.events, r.event.record.Key)
		o := Outcome{State: participation.Refused, Refused: r.why}
		if p := &r.event.record; p.State != participation.Fresh {
			o.State, o.Round = p.Outcome(), p.Draw.Round // of the rounds that it joined before
		}
		l.tell(r.event, o)
	}
	if n := len(refused); n > 0 {
		l.Logger.Warn("the policy lets users pay for no further round: not sent, or not again", "users", n, "because",
			refused[0].why)
	}
}

// send notes a publish of bundles to the newest attempt, durably, and then makes it. All of them may be sent there.
func (l *loop) send(r *round, bundles []*bundle) error {
	change := participation.Change{Rounds: map[stream.Round]stream.Hash{r.number: r.manifest}}
	again := false
	for _, b := range bundles {
		again = again || len(b.record().Sends) > 0 && !b.record().SentTo(r.attempt)
		for _, e := range b.events {
			e.record.Sending(r.attempt, l.contract.agreement.HasFloors())
			change.Events = append(change.Events, e.record)
		}
		delete(l.dirty, b)
	}
	if err := l.Store.Write(change); err != nil {
		return fmt.Errorf("charge events: %w", err)
	}
	for _, b := range bundles {
		b.inFlight, b.tried = true, true
		l.uplink.sending += len(b.events)
	}
	d := delivery{round: r, open: r.open, attempt: r.attempt, bundles: bundles, due: l.beats.next(time.Now())}
	if r.keeps() > 0 && l.drawsFirst() {
		d.due = time.Now() // it was drawn before it asked, so this tells nothing of the work
	}
	if again {
		d.announces = r.keeps()
	}
	l.courier.deliver(d)
	l.progress()
	return nil
}

// answered takes the answer of a delivery.
func (l *loop) answered(d delivery) {
	for i, b := range d.bundles {
		b.inFlight = false
		l.uplink.sending -= len(b.events)
		if i < len(d.acks) {
			for _, e := range b.events {
				e.record.Acked(d.attempt, d.acks[i])
			}
			l.dirty[b] = true
		}
		if !b.record().Answered(d.round.attempt) {
			d.round.owed = append(d.round.owed, b)
		}
	}
	l.uplink.answered(d, time.Now())
	l.progress()
}

// resend sends the bundles of the newest round that its newest attempt has not, or may not have: at once to a new
// attempt, at the pace of the timer where an answer is missing.
func (l *loop) resend() error {
	r := l.current
	if !r.receives() || r.message == nil {
		return nil
	}
	var due, later, ended []*bundle
	n, now := 0, time.Now()
	for _, b := range r.owed {
		record, a := b.record(), r.attempt
		switch {
		case b.inFlight || record.Answered(a) || !record.MaySend(a, l.contract.agreement.HasFloors()):
			// Its answer, settling or a newer attempt decides about it.
		case !record.SentTo(a) && b.exhausted(l.Policy.Reports()):
			ended = append(ended, b) // it was sent often enough
		case l.uplink.sending+n >= l.uplink.window.now || (record.SentTo(a) && b.tried && !l.retry):
			later = append(later, b)
		default:
			due = append(due, b)
			n += len(b.events)
		}
	}
	if tries := l.uplink.refusals.tries(len(due), r.attempt, now); tries < len(due) {
		due, later = due[:tries], append(later, due[tries:]...)
	}
	r.owed = later
	if err := l.giveUp(r, ended); err != nil {
		return err
	}
	for batch := range slices.Chunk(due, chunkMessages) {
		if err := l.send(r, batch); err != nil {
			return err
		}
	}
	return nil
}

// flush stores the answers that are not stored yet. A store that misses some is safe: it takes a publish for
// unanswered.
func (l *loop) flush() error {
	l.flushed = time.Now()
	var events []*event
	for b := range l.dirty {
		events = append(events, b.events...)
	}
	clear(l.dirty)
	for some := range slices.Chunk(events, settleChunk) {
		change := participation.Change{Events: make([]participation.Record, len(some))}
		for i, e := range some {
			change.Events[i] = e.record
		}
		if err := l.Store.Write(change); err != nil {
			return fmt.Errorf("store acknowledgements: %w", err)
		}
	}
	return nil
}
