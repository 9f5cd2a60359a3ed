package device

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// settleChunk bounds one write of settled events.
const settleChunk = 8192

// settle decides the events of a round whose Close is known, or will never come, except events that wait for the
// broker's answer.
func (l *loop) settle(r *round) error {
	switch {
	case r.closed == nil && r.gone:
		return l.decide(r, (*participation.Record).Abandon)
	case r.closed == nil:
		return nil
	}
	return l.decide(r, func(p *participation.Record) { p.Decide(*r.closed) })
}

// decide settles events, durably, before anybody is told.
func (l *loop) decide(r *round, by func(*participation.Record)) error {
	var events []*event
	waiting := r.bundles[:0:0]
	for _, b := range r.bundles {
		if b.inFlight {
			waiting = append(waiting, b)
			continue
		}
		events = append(events, b.events...)
		delete(l.dirty, b)
	}
	r.bundles, r.owed = waiting, nil
	return l.conclude(r, events, by)
}

// giveUp leaves to others the places of bundles that go to no further attempt at a round because one of their
// events has used up its reports. It settles those events, except members of an interactive phase, which wait for
// the Close and then for the next round.
func (l *loop) giveUp(r *round, bundles []*bundle) error {
	var users uint64
	var over []*event
	for _, b := range bundles {
		if b.gone {
			continue
		}
		b.gone = true
		users += uint64(len(b.events))
		if !slices.ContainsFunc(b.events, l.stays) {
			over = append(over, b.events...)
		}
	}
	if users == 0 {
		return nil
	}
	l.Logger.Warn(
		"the stage opened the round too often: these users are sent no more reports in it, and most stay unknown",
		"round", r.number, "attempt", r.attempt.Number, "users", users, "max_reports", l.Policy.Reports())
	r.joined -= min(r.joined, users)
	r.bundles = slices.DeleteFunc(r.bundles, func(b *bundle) bool {
		return b.gone &&
			!slices.ContainsFunc(b.events, l.stays)
	})
	return l.conclude(r, over, (*participation.Record).Abandon)
}

// conclude settles events of a round for which no publish is under way.
func (l *loop) conclude(r *round, events []*event, by func(*participation.Record)) error {
	before := l.total
	for len(events) > 0 {
		n := min(len(events), settleChunk)
		change := participation.Change{Events: make([]participation.Record, n)}
		for i, e := range events[:n] {
			by(&e.record)
			change.Events[i] = e.record
		}
		if err := l.Store.Write(change); err != nil {
			for _, e := range events { // nobody knows what is stored; a restart finds out
				e.record.State = participation.Charged
				r.bundles = append(r.bundles, &bundle{events: []*event{e}})
			}
			return fmt.Errorf("settle events of round %d: %w", r.number, err)
		}
		if err := l.accounts.settle(events[:n]); err != nil {
			return err
		}
		for _, e := range events[:n] {
			l.requeue(e)
		}
		events = events[n:]
	}
	if len(r.bundles) == 0 && r != l.current {
		delete(l.rounds, r.number)
	}
	if told := l.total; told.Unknown > before.Unknown || told.Uncounted > before.Uncounted {
		l.Logger.Info("these users left without being counted", "round", r.number, "unknown", told.Unknown-before.Unknown,
			"uncounted", told.Uncounted-before.Uncounted, "of_these_too_dear_to_send_again", told.NotAgain-before.NotAgain)
	}
	l.progress()
	return nil
}

// leave gives up events that wait for a round, since none will come, and tells their callers.
func (l *loop) leave(events []*event, why string) {
	for _, e := range events {
		l.drop(e)
	}
	if n := len(events); n > 0 {
		l.Logger.Info("users wait for no further round", "users", n, "because", why)
	}
}

// requeue lets an event whose round is decided wait for another one, or answers it.
func (l *loop) requeue(e *event) {
	switch {
	case !l.settled(e) && e.present:
		l.queue.add(e)
	case e.record.State != participation.Uncounted && l.stays(e):
		delete(l.events, e.record.Key) // nobody asked about it in this life yet; who does finds it in the store
	default:
		l.drop(e)
	}
}

// drop forgets an event, and tells what became of it.
func (l *loop) drop(e *event) {
	delete(l.events, e.record.Key)
	l.answer(e)
}

// answer tells the callers of an event its outcome.
func (l *loop) answer(e *event) {
	o := Outcome{State: e.record.Outcome(), Round: e.record.Draw.Round, Open: e.record.State == participation.Charged}
	if !l.spent(e) && !l.stays(e) {
		o.Refused = l.dear(e)
	}
	l.tell(e, o)
}

// tell passes an outcome to all callers that asked about an event. An event that an earlier process left charged may
// be settled before anybody here asks about it. It is counted once then, and not again when its row comes.
func (l *loop) tell(e *event, o Outcome) {
	switch key := e.record.Key; {
	case !e.present && len(e.callbacks) == 0:
		l.early[key] = true
		l.total.add(o, e.units())
	case l.early[key]:
		delete(l.early, key)
	default:
		l.total.add(o, e.units())
	}
	for _, tell := range e.callbacks {
		tell(o)
	}
	e.callbacks = nil
}

// finish ends waiting after the task's End: no round will come, and a Close that does not come in time never will.
func (l *loop) finish() error {
	l.leave(l.queue.all(), "the task has ended")
	if time.Since(l.endedAt) < l.CloseWait {
		return nil
	}
	for _, r := range l.rounds {
		if r.closed == nil && len(r.bundles) > 0 && (r.closing == nil || time.Since(l.endedAt) > l.CloseWait+l.MaxPoll) {
			l.Logger.Warn("no Close came: the outcome stays unknown", "round", r.number)
			if err := l.decide(r, (*participation.Record).Abandon); err != nil {
				return err
			}
		}
	}
	return nil
}

// shutdown takes what has been answered, stores it, and answers everybody: err is why the loop ends, nil for a stop.
func (l *loop) shutdown(err error) error {
	for _, d := range l.courier.delivered.take() { // no delivery is left that could add another
		l.answered(d)
	}
	// A store that failed is not written again: what it holds is older, and so more careful.
	var refused *consent.RefusedError
	if err == nil || errors.As(err, &refused) {
		if failed := l.flush(); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	left := l.inbox.close() // an earlier process may have sent them
	stored, failed := l.lookUp(left)
	for i := range stored {
		left[i].record = stored[i]
	}
	err = errors.Join(err, failed)
	l.abandon(left, refused)
	l.abandon(slices.Collect(maps.Values(l.events)), refused)
	clear(l.events)
	l.progress()
	return err
}

// abandon tells the callers of events whose outcome this process will not learn. The next process may learn the
// outcome of a charged one.
func (l *loop) abandon(events []*event, refused *consent.RefusedError) {
	charged := 0
	for _, e := range events {
		if e.record.State == participation.Charged {
			charged++
		}
		if refused != nil && e.record.State == participation.Fresh {
			l.tell(e, Outcome{State: participation.Refused, Refused: refused})
			continue
		}
		l.answer(e)
	}
	if charged > 0 {
		l.Logger.Info("stopped before the outcome of these reports was known: they are charged, and a later run learns it",
			"reports", charged)
	}
}
