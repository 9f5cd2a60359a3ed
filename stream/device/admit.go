package device

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// admit looks up events of the inbox in the store and lets those wait that have not taken part.
func (l *loop) admit(events []*event) error {
	events = l.fitting(events)
	if len(events) > 0 {
		if l.contract.unpinned != nil {
			l.contract.unpinned.People = events[0].pinned
		}
		err := l.size(events[0].terms)
		if err == nil {
			err = l.pin()
		}
		if err != nil {
			var refused *consent.RefusedError
			errors.As(err, &refused)
			l.abandon(events, refused)
			return err
		}
	}
	stored, err := l.lookUp(events)
	if err != nil {
		l.abandon(events, nil)
		return err
	}
	for _, record := range stored {
		// A settled event proves that its round was closed, whatever a lagging replica shows now.
		if l.current != nil && record.State > participation.Charged && record.Draw.Round >= l.current.number {
			l.current.done = true
		}
	}
	for i, e := range events {
		if known := l.events[e.record.Key]; known != nil {
			known.callbacks = append(known.callbacks, e.callbacks...)
			if !known.present {
				known.block, known.work, known.rows, known.people, known.present = e.block, e.work, e.rows, e.people, true
			}
			continue
		}
		if stored[i].State == participation.Charged {
			// load took up all of them, and settle takes an event off l.events only after a write.
			l.abandon(events[i:], nil)
			return fmt.Errorf("the store has a charged event that it did not list before")
		}
		e.record, e.present = stored[i], true
		if l.settled(e) {
			l.answer(e)
			continue
		}
		l.events[e.record.Key] = e
		l.queue.add(e) // advance lets it join
	}
	l.progress()
	return nil
}

// lookUp reads what the store knows of events. Where it cannot be read, each of them may have been counted.
func (l *loop) lookUp(events []*event) ([]participation.Record, error) {
	if len(events) == 0 {
		return nil, nil
	}
	keys := make([]participation.Key, len(events))
	for i, e := range events {
		keys[i] = e.record.Key
	}
	stored, err := l.Store.Read(keys)
	if err != nil {
		for _, e := range events {
			e.record.State = participation.Unknown
		}
		return nil, fmt.Errorf("look up events: %w", err)
	}
	return stored, nil
}

// size takes the terms of a silo all of whose rows are read, before anything of them is done.
func (l *loop) size(terms *consent.Agreement) error {
	if l.contract.terms != nil || l.over() {
		return nil
	}
	l.accounts.agreement = terms
	if err := l.accounts.enter(false, uint64(len(l.events))); err != nil {
		return err
	}
	l.contract.terms, l.contract.unpinned.Units, l.contract.unpinned.Trials = terms, terms.Units(), terms.Trials()
	l.Logger.Info("all that this silo has is one block", "units", terms.Units(), "units_planned_for", l.contract.agreement.Units(),
		"trials", terms.Trials(),
		"trials_planned", l.contract.agreement.Trials(), "epsilon", terms.Guarantee.Epsilon, "delta", terms.Delta)
	return l.reports.prepare(l.current.place.Index, l.current.message)
}

// pin has the store belong to the task and the source of the rows, where it does not yet. It comes with the first
// event that a round has room for: until then nobody took part, and data that the reader refuses leave the store free
// for others.
func (l *loop) pin() error {
	if l.contract.unpinned == nil || l.contract.terms == nil {
		return nil
	}
	if err := l.Store.Write(participation.Change{Pin: l.contract.unpinned}); err != nil {
		return fmt.Errorf("write pin: %w", err)
	}
	if !l.Policy.Pins() {
		l.Logger.Warn("pinned the task at first use: nothing but the broker vouches for it", "task_hash",
			fmt.Sprintf("%x", l.contract.unpinned.Task))
	}
	if r := l.currentNumber(); r > 1 && l.contract.agreement.Spec.Silo != nil {
		l.Logger.Warn(
			"this state folder took part in no round of the task, which has gone on without it: rows that were in a report of the task before, from a "+
				"folder that is lost, are drawn anew and pay twice: if there are such, stop this and leave the task", "round", r)
	}
	l.contract.unpinned = nil
	return nil
}

// settled reports whether an event takes part in no further round.
func (l *loop) settled(e *event) bool {
	switch e.record.State {
	case participation.Counted, participation.Unknown:
		return !l.stays(e)
	case participation.Uncounted:
		return !l.stays(e) && (l.spent(e) || l.dear(e) != nil)
	case participation.Fresh:
		return l.over()
	}
	return false
}

// spent reports whether an uncounted event may join no further round, whatever that round costs: the task is over,
// or the event used up its reports or refunds.
func (l *loop) spent(e *event) bool {
	return l.over() || e.record.Exhausted(l.Policy.Reports()) || e.record.Refunds >= l.Policy.Refunds()
}

// dear returns the refusal of an uncounted event that may not pay for a further round or phase, nil if it may.
func (l *loop) dear(e *event) *consent.RefusedError {
	if l.contract.agreement == nil || e.record.State != participation.Uncounted {
		return nil
	}
	return l.contract.agreement.Again(e.record.Refunds + 2)
}

// stays reports whether an event of an interactive phase may be asked again in that phase.
func (l *loop) stays(e *event) bool {
	p := &e.record
	if l.over() || !p.Stays(p.Draw.Phase) || uint64(p.Reports) >= uint64(l.Policy.Reports())+uint64(p.Rounds) {
		return false // the next round allows one report more than Exhausted says of the last
	}
	if l.current != nil && l.current.message != nil && l.current.phase() != p.Draw.Phase {
		return false
	}
	if l.contract.agreement == nil {
		return true
	}
	at, found := manifest.PhaseOf(l.contract.agreement.Task.Plan, uint64(p.Draw.Step))
	return found && uint64(p.Draw.Step) < at.Stint.Last
}
