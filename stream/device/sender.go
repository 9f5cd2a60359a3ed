package device

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A sender takes events from the queue into bundles of the newest round, and has bundles published until they have a
// reply.
type sender struct {
	*core
	settler *settler
	retry   bool      // the timer ticked: send unanswered bundles again
	flushed time.Time // when unstored was empty last
}

// joinWaiting lets events that are due join the newest round, where it gives no places.
func (s *sender) joinWaiting() error {
	r := s.rounds.known.newest
	for r.keeps() == 0 && !s.rounds.gathering() && s.rounds.joinable() && s.uplink.room() > 0 {
		now := s.now()
		if s.uplink.refusals.holds(r.attempt, now) || s.clock.holds() {
			return nil
		}
		if s.beats.left == 0 {
			if s.queue.waits(r, s.places(), now) {
				s.beats.arm(now)
			}
			return nil
		}
		n := min(int(min(r.most-r.joined, uint64(s.chunk))), s.uplink.room(), s.beats.left)
		if n = s.uplink.most(n, len(r.owed), r.attempt, now); n == 0 {
			return nil
		}
		batch, misfits := s.queue.next(r, n, s.places(), now)
		s.dismiss(misfits, misfit)
		if len(batch) == 0 {
			return nil
		}
		s.beats.left -= len(batch)
		if err := s.join(batch); err != nil {
			return err
		}
	}
	return nil
}

// misfit returns the reason why an event that waited is dismissed.
const misfit = "the round is none that they may answer"

// join charges waiting events to the newest round, with a draw of their own each, and only then sends them.
func (s *sender) join(events []*event) error {
	r := s.rounds.known.newest
	got := s.do(effect{call: chargeLedger, round: r, events: events})
	if got.err != nil {
		return got.err
	}
	s.refuse(got.refused)
	if events = got.allowed; len(events) == 0 {
		return nil
	}
	if got := s.do(effect{call: drawReports, round: r, events: events}); got.err != nil {
		return got.err
	}
	var bundles []*bundle
	for members := range slices.Chunk(events, min(s.settings.Bundle, int(r.place.Phase.Mechanism.MaxBundle))) {
		id := s.chance.id()
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
	return s.send(r, bundles)
}

// refuse answers events that may not pay for a round with the policy's reason.
func (s *sender) refuse(refused []refusal) {
	for _, r := range refused {
		delete(s.events, r.event.record.Key)
		o := Outcome{State: participation.Refused, Refused: r.why}
		if p := &r.event.record; p.State != participation.Fresh {
			o.State, o.Round = p.Outcome(), p.Draw.Round // of the rounds that it joined before
		}
		s.book.tell(r.event, o)
	}
	if n := len(refused); n > 0 {
		s.log.Warn("the policy lets users pay for no further round: not sent, or not again", "users", n, "because",
			refused[0].why)
	}
}

// send notes a publish of bundles to the newest attempt, durably, and then makes it. The caller has checked that all of
// them may be sent there.
func (s *sender) send(r *round, bundles []*bundle) error {
	change := participation.Change{Rounds: map[stream.Round]stream.Hash{r.number: r.manifest}}
	again, of := false, s.contract.agreement.Attempts()
	for _, b := range bundles {
		again = again || len(b.record().Sends) > 0 && !b.record().SentTo(r.attempt)
		for _, e := range b.events {
			e.record.Sending(r.attempt, of)
			change.Events = append(change.Events, e.record)
		}
		delete(s.unstored, b)
	}
	if got := s.do(effect{call: write, change: change}); got.err != nil {
		return fmt.Errorf("charge events: %w", got.err)
	}
	for _, b := range bundles {
		b.inFlight, b.tried = true, true
		s.uplink.sending += len(b.events)
	}
	now := s.now()
	d := delivery{round: r, open: r.open, join: r.join, attempt: r.attempt, bundles: bundles, due: s.beats.next(now)}
	if r.keeps() > 0 && s.drawsFirst() {
		d.due = now // it was drawn before it asked, so this time reveals nothing about the work
	}
	if again {
		d.announces = r.keeps()
	}
	s.do(effect{call: publish, delivery: d})
	s.do(effect{call: tellProgress})
	return nil
}

// takeAnswer takes the answer of a delivery.
func (s *sender) takeAnswer(d delivery) {
	for i, b := range d.bundles {
		b.inFlight = false
		s.uplink.sending -= len(b.events)
		if i < len(d.acks) {
			for _, e := range b.events {
				e.record.Acked(d.attempt, d.acks[i])
			}
			s.unstored[b] = true
			if b.record().Answered(d.attempt) {
				s.sharer.forget(b)
			}
		}
		if !b.record().Answered(d.round.attempt) {
			d.round.owed = append(d.round.owed, b)
		}
	}
	s.uplink.answered(d, s.now())
	s.do(effect{call: tellProgress})
}

// sendOwed sends the bundles of the newest round that its newest attempt has not, or may not have: at once to a new
// attempt, at the timer's pace if a reply is missing.
func (s *sender) sendOwed() error {
	r := s.rounds.known.newest
	if !r.receives() || r.message == nil {
		return nil
	}
	var due, later, ended []*bundle
	n, of := 0, s.contract.agreement.Attempts()
	for _, b := range r.owed {
		record, a := b.record(), r.attempt
		switch {
		case b.inFlight || record.Answered(a) || !record.MaySend(a, of):
			// Its reply, settling or a newer attempt decides about it.
		case !record.SentTo(a) && !(of.Alike && len(record.Sends) > 0) && b.exhausted(s.settings.Policy.Reports()):
			ended = append(ended, b) // it was sent often enough
		case n >= s.uplink.room() || (record.SentTo(a) && b.tried && !s.retry):
			later = append(later, b)
		default:
			due = append(due, b)
			n += len(b.events)
		}
	}
	if tries := s.uplink.refusals.tries(len(due), r.attempt, s.now()); tries < len(due) {
		due, later = due[:tries], append(later, due[tries:]...)
	}
	r.owed = later
	if err := s.settler.giveUp(r, ended); err != nil {
		return err
	}
	for batch := range slices.Chunk(due, chunkMessages) {
		if err := s.send(r, batch); err != nil {
			return err
		}
	}
	return nil
}

// storeAnswers stores the replies that are not stored yet. Losing a reply is safe: its publish then counts as
// unanswered.
func (s *sender) storeAnswers() error {
	s.flushed = s.now()
	var events []*event
	for b := range s.unstored {
		events = append(events, b.events...)
	}
	clear(s.unstored)
	slices.SortFunc(events, byKey)
	for some := range slices.Chunk(events, settleChunk) {
		if got := s.do(effect{call: write, change: changeOf(some)}); got.err != nil {
			return fmt.Errorf("store acknowledgements: %w", got.err)
		}
	}
	return nil
}

// byKey orders events by their keys, so that every run handles them in the same order.
func byKey(a, b *event) int { return bytes.Compare(a.record.Key[:], b.record.Key[:]) }

// changeOf returns the change that stores the records of events.
func changeOf(events []*event) participation.Change {
	records := make([]participation.Record, len(events))
	for i, e := range events {
		records[i] = e.record
	}
	return participation.Change{Events: records}
}
