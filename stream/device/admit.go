package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// An admission takes events out of the inbox, and lets those wait for a round that have not taken part.
type admission struct{ *core }

// admit looks up events of the inbox in the store and lets those wait that have not taken part.
func (a *admission) admit(events []*event) error {
	events = a.fitting(events)
	if len(events) > 0 {
		if a.contract.unpinned != nil {
			a.contract.unpinned.People = events[0].pinned
		}
		err := a.settleSize(events[0].terms)
		if err == nil {
			err = a.pinStore()
		}
		if err != nil {
			var refused *consent.RefusedError
			errors.As(err, &refused)
			a.abandon(events, refused)
			return err
		}
	}
	stored, err := a.lookUp(events)
	if err != nil {
		a.abandon(events, nil)
		return err
	}
	for _, record := range stored {
		if record.State > participation.Charged { // whatever a lagging replica shows now
			a.rounds.known.proveClosed(record.Draw.Round)
		}
	}
	var lined []*event
	for i, e := range events {
		if known := a.events[e.record.Key]; known != nil {
			known.callbacks = append(known.callbacks, e.callbacks...)
			if !known.present {
				known.block, known.work, known.rows, known.people, known.present = e.block, e.work, e.rows, e.people, true
			}
			continue
		}
		if stored[i].State == participation.Charged {
			// loadCharged took up all of them, and settle takes an event off a.events only after a write.
			a.abandon(events[i:], nil)
			return fmt.Errorf("the store has a charged event that it did not list before")
		}
		e.record, e.present = stored[i], true
		if a.settled(e) {
			a.answer(e)
			continue
		}
		a.events[e.record.Key] = e
		lined = append(lined, e)
	}
	a.line(lined...) // doWhatIsDue lets them join
	a.do(effect{call: tellProgress})
	return nil
}

// lookUp reads what the store knows of events. Where it cannot be read, each of them may have been counted.
func (a *admission) lookUp(events []*event) ([]participation.Record, error) {
	if len(events) == 0 {
		return nil, nil
	}
	got := a.do(effect{call: readEvents, events: events})
	if got.err != nil {
		for _, e := range events {
			e.record.State = participation.Unknown
		}
		return nil, fmt.Errorf("look up events: %w", got.err)
	}
	return got.records, nil
}

// settleSize takes the terms of a silo once all its rows are read, before any of them is used.
func (a *admission) settleSize(terms *consent.Agreement) error {
	if a.contract.terms != nil || a.rounds.over() {
		return nil
	}
	if got := a.do(effect{call: enterLedger, agreement: a.contract.agreement, terms: terms,
		open: uint64(len(a.events))}); got.err != nil {
		return got.err
	}
	a.contract.terms, a.contract.unpinned.Units, a.contract.unpinned.Trials = terms, terms.Units(), terms.Trials()
	a.log.Info("all that this silo has is one block", "units", terms.Units(), "units_planned_for", a.contract.agreement.Units(),
		"trials", terms.Trials(),
		"trials_planned", a.contract.agreement.Trials(), "epsilon", terms.Guarantee.Epsilon, "delta", terms.Delta)
	r := a.rounds.known.newest
	return a.do(effect{call: prepareReports, number: r.number, phase: r.place.Index, message: r.message}).err
}

// pinStore has the store belong to the task and the source of the rows, where it does not yet. It comes with the first
// event that a round has room for: until then nobody took part, and data that the reader refuses leave the store free
// for others.
func (a *admission) pinStore() error {
	if a.contract.unpinned == nil || a.contract.terms == nil {
		return nil
	}
	if got := a.do(effect{call: write, change: participation.Change{Pin: a.contract.unpinned}}); got.err != nil {
		return fmt.Errorf("write pin: %w", got.err)
	}
	if !a.settings.Policy.Pins(a.contract.agreement.Task) {
		a.log.Warn("pinned the task at first use: nothing but the broker vouches for it", "task_hash",
			fmt.Sprintf("%x", a.contract.unpinned.Task))
	}
	if r := a.rounds.known.number(); r > 1 && a.contract.agreement.Spec.Silo != nil {
		a.log.Warn(
			"this state folder took part in no round of the task, which has gone on without it: rows that were in a report of the task before, from a "+
				"folder that is lost, are drawn again and pay twice: if there are such, stop this and leave the task", "round", r)
	}
	a.contract.unpinned = nil
	return nil
}

// fitting refuses events that do not have the shape of the task's reports, and returns the others.
func (a *admission) fitting(events []*event) []*event {
	return slices.DeleteFunc(events, func(e *event) bool {
		if e.fits == nil {
			return false
		}
		if err := e.fits(a.contract.agreement); err != nil {
			o, _ := refusedBy(err)
			a.book.tell(e, o)
			return true
		}
		e.rows = a.contract.agreement.Units()
		return false
	})
}
