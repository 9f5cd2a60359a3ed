package device

import (
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// poll reads the records this device needs and has not seen. It returns an error only if the policy refuses
// or the store fails; reads that the broker does not answer are retried at the next poll.
func (l *loop) poll() error {
	before, begun := l.rounds.learned, time.Now()
	if l.contract.agreement == nil {
		if err := l.core.agree(); err != nil {
			return err
		}
	}
	if l.contract.agreement != nil {
		if err := l.rounds.readNew(l.core.busy); err != nil {
			return err
		}
	}
	now := time.Now()
	// An event that came while this poll was not reading rounds causes the next poll at once.
	l.times.resting = l.contract.agreement != nil &&
		(!l.core.busy() || !l.rounds.over() && l.rounds.looked.Before(begun))
	if l.times.resting {
		l.times.rests(now)
		return nil
	}
	l.times.looked(now, l.rounds.learned > before, l.core.patience(l.wakes != nil))
	if l.rounds.unsure {
		l.times.soon(now, lag/4) // a round is missing
	}
	return nil
}

// takeWake acts on the record that a wake carries. The record passes the same checks as one that is read, and
// moreover only moves this device forward: anybody who can send wakes can send old ones. A record that a wake does
// not suffice to judge is read later. takeWake returns an error only if the policy refuses or the store fails.
func (l *loop) takeWake(w stream.Wake) error {
	if w.Subject == "" {
		l.rounds.unsure = l.rounds.known.newest != nil
		l.pollSoon()
		return nil
	}
	at, err := stream.ParseSubject(w.Subject)
	if err == nil && at.Task != l.Task {
		err = errors.New("a wake of another task")
	}
	if err != nil {
		l.records.ignore(w.Subject, err)
		return nil
	}
	if l.contract.agreement == nil {
		// Anybody can sign a Task of this name with a key of their own. Which one is on the broker has to be read.
		if at.Verb == "task" {
			l.pollSoon()
		}
		return nil
	}
	before, got := l.rounds.learned, stream.Message{Subject: w.Subject, Data: w.Data}
	switch one := l.rounds.known.of[at.Round]; {
	case at.Verb == "round":
		if l.rounds.hearsRound(at.Round) {
			if m, hash, ok := l.records.round(got); ok {
				err = l.rounds.hearRound(m, hash, l.core.spread())
			}
		}
	case at.Verb == "end":
		if !l.rounds.over() {
			if end, ok := l.records.end(got); ok {
				l.rounds.takeEnd(end)
			}
		}
	case one == nil:
		if (at.Verb == "open" || at.Verb == "join") && at.Round > l.rounds.known.number() && !l.rounds.over() {
			l.pollSoon() // reads its Round, without which it has no meaning
		}
	case at.Verb == "open":
		if o, a, ok := l.records.open(got, one.manifest); ok {
			if !l.rounds.hearOpen(one, o, a) {
				l.pollSoon()
			} else if !one.paired() && one == l.rounds.known.newest {
				l.rounds.hearPart(one, l.core.spread())
			}
		}
	case at.Verb == "join":
		if j, hash, ok := l.records.join(got, one.manifest); ok {
			switch sure, err := l.rounds.hearJoin(one, j, hash, l.core.spread()); {
			case err != nil:
				l.records.ignore(w.Subject, err)
			case !sure:
				l.pollSoon()
			}
		}
	case at.Verb == "claim":
		if one.closed == nil && !one.claimed && l.records.claimed(got, one.manifest) {
			l.rounds.hearClaim(one)
		}
	case at.Verb == "close":
		if one.closed == nil && one.closing == nil {
			if c, ok := l.records.close(got, one.manifest); ok {
				l.rounds.hearClose(one, c, apart(one.users(), one.events(), l.MaxPoll))
			}
		}
	}
	switch {
	case l.rounds.learned == before:
	case !l.core.busy():
		l.times.resting = true
		l.times.rests(time.Now())
	default:
		l.times.heard(time.Now(), l.core.patience(l.wakes != nil))
	}
	return err
}

// pollSoon makes a device with something to do poll soon, because a record may have been written without a wake: at a
// random time, so that not all devices poll at once.
func (l *loop) pollSoon() {
	if l.contract.agreement == nil || l.core.busy() {
		l.times.soon(time.Now(), l.core.spread())
	}
}
