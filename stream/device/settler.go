package device

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// settleChunk bounds one write of settled events.
const settleChunk = 8192

// A settler decides about events of rounds that are closed or given up. Each outcome is durable before a caller gets
// it.
type settler struct{ *core }

// settleClosed decides about the events of rounds with a known Close, or for which none will come, except events that
// wait for the broker's reply.
func (s *settler) settleClosed() error {
	for _, r := range s.rounds.known.sorted() {
		by := (*participation.Record).Abandon
		switch {
		case r.closed != nil:
			by = func(p *participation.Record) { p.Decide(*r.closed) }
		case !r.gone:
			continue
		}
		if err := s.settle(r, by); err != nil {
			return err
		}
	}
	return nil
}

// settle decides about the events of a round, except events that wait for the broker's reply.
func (s *settler) settle(r *round, by func(*participation.Record)) error {
	var events []*event
	waiting := r.bundles[:0:0]
	for _, b := range r.bundles {
		if b.inFlight {
			waiting = append(waiting, b)
			continue
		}
		events = append(events, b.events...)
		delete(s.unstored, b)
		s.sharer.forget(b)
	}
	r.bundles, r.owed = waiting, nil
	return s.conclude(r, events, by)
}

// giveUp gives up the places of bundles that go to no further attempt at a round because one of their events has used
// up its reports. It settles those events, except members of an interactive phase, which wait for the Close and then
// for the next round.
func (s *settler) giveUp(r *round, bundles []*bundle) error {
	var users uint64
	var over []*event
	for _, b := range bundles {
		if b.gone {
			continue
		}
		b.gone = true
		users += uint64(len(b.events))
		if !slices.ContainsFunc(b.events, s.stays) {
			over = append(over, b.events...)
			delete(s.unstored, b)
		}
	}
	if users == 0 {
		return nil
	}
	s.log.Warn(
		"the stage opened the round too often: these users are sent no more reports in it, and most stay unknown",
		"round", r.number, "attempt", r.attempt.Number, "users", users, "max_reports", s.settings.Policy.Reports())
	r.joined -= min(r.joined, users)
	r.bundles = slices.DeleteFunc(r.bundles, func(b *bundle) bool {
		return b.gone && !slices.ContainsFunc(b.events, s.stays)
	})
	return s.conclude(r, over, (*participation.Record).Abandon)
}

// conclude settles events of a round for which no publish is under way.
func (s *settler) conclude(r *round, events []*event, by func(*participation.Record)) error {
	before := s.book.total
	for len(events) > 0 {
		some := events[:min(len(events), settleChunk)]
		for _, e := range some {
			by(&e.record)
		}
		if got := s.do(effect{call: write, change: changeOf(some)}); got.err != nil {
			for _, e := range events { // what is stored is unknown; a restart finds out
				e.record.State = participation.Charged
				r.bundles = append(r.bundles, &bundle{events: []*event{e}})
			}
			return fmt.Errorf("settle events of round %d: %w", r.number, got.err)
		}
		if got := s.do(effect{call: settleLedger, events: some}); got.err != nil {
			return got.err
		}
		for _, e := range some {
			s.requeue(e)
		}
		events = events[len(some):]
	}
	if len(r.bundles) == 0 && r != s.rounds.known.newest {
		delete(s.rounds.known.of, r.number)
	}
	if told := s.book.total; told.Unknown > before.Unknown || told.Uncounted > before.Uncounted {
		s.log.Info("these users left without being counted", "round", r.number, "unknown", told.Unknown-before.Unknown,
			"uncounted", told.Uncounted-before.Uncounted, "of_these_too_dear_to_send_again", told.NotAgain-before.NotAgain)
	}
	s.do(effect{call: tellProgress})
	return nil
}

// requeue lets an event of a decided round wait for another round, or answers its callers.
func (s *settler) requeue(e *event) {
	switch {
	case !s.settled(e) && e.present:
		s.line(e)
	case e.record.State != participation.Uncounted && s.stays(e):
		delete(s.events, e.record.Key) // no caller asked about it in this process yet; a later one finds it in the store
	default:
		s.forget(e)
	}
}

// endWaiting ends waiting after the task's End: no round will come, and a Close that does not come in time never will.
func (s *settler) endWaiting() error {
	s.recallUngranted()
	s.dismiss(s.queue.all(), "the task has ended")
	ago := s.now().Sub(s.rounds.endedAt)
	if ago < s.settings.CloseWait {
		return nil
	}
	for _, r := range s.rounds.known.sorted() {
		if r.closed == nil && len(r.bundles) > 0 && (r.closing == nil || ago > s.settings.CloseWait+s.settings.MaxPoll) {
			s.log.Warn("no Close came: the outcome stays unknown", "round", r.number)
			if err := s.settle(r, (*participation.Record).Abandon); err != nil {
				return err
			}
		}
	}
	return nil
}
