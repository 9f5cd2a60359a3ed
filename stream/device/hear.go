package device

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// takeWake acts on the record that a wake carries. The record passes the same checks as one that is read, and
// moreover only moves this device forward: anybody who can send wakes can send old ones. A record that a wake does
// not suffice to judge is read later. takeWake returns an error only if the policy refuses or the store fails.
func (l *loop) takeWake(ctx context.Context, w stream.Wake) error {
	if w.Subject == "" {
		l.unsure = l.current != nil
		l.missed()
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
		// Anybody can sign a Task of this name with a key of his own. Which one stands there only the broker knows.
		if at.Verb == "task" {
			l.missed()
		}
		return nil
	}
	before, got := l.learned, stream.Message{Subject: w.Subject, Data: w.Data}
	switch at.Verb {
	case "round":
		err = l.hearRound(ctx, got, at.Round)
	case "open":
		l.hearOpen(got, at)
	case "claim":
		l.hearClaim(got, at.Round)
	case "close":
		l.hearClose(ctx, got, at)
	case "end":
		if !l.over() {
			l.takeEnd(got)
		}
	}
	switch {
	case l.learned == before:
	case l.has() == nothing:
		l.resting = true
		l.pace.rests(time.Now())
	default:
		l.pace.heard(time.Now(), l.patience())
	}
	return err
}

// missed notes that something may have been written without a wake. A device that has a use for it polls soon, at
// a random time so that not all devices poll at once.
func (l *loop) missed() {
	if l.contract.agreement == nil || l.has() != nothing {
		l.pace.soon(time.Now(), l.spread())
	}
}

func (l *loop) hearRound(ctx context.Context, got stream.Message, number stream.Round) error {
	known := l.rounds[number]
	if l.over() || number <= l.currentNumber() && known == nil {
		return nil
	}
	m, hash, ok := l.records.round(got)
	switch {
	case !ok:
		return nil
	case known != nil && known.manifest != hash:
		l.replaced(number)
		return nil
	case known != nil:
		return nil
	}
	for _, r := range l.rounds { // its Close was before, and may still be on its way
		if len(r.bundles) > 0 && r.closed == nil && r.judged.IsZero() {
			r.judged = time.Now().Add(l.Poll + l.chance.within(l.spread()))
		}
	}
	return l.takeRound(ctx, m, hash)
}

func (l *loop) hearOpen(got stream.Message, at stream.Address) {
	r := l.rounds[at.Round]
	if r == nil {
		if at.Round > l.currentNumber() && !l.over() {
			l.missed() // its Round, without which it says nothing
		}
		return
	}
	o, a, ok := l.records.open(got, r.number, r.manifest)
	switch {
	case !ok:
	case r.open != nil && a.Number == r.attempt.Number && a != r.attempt:
		l.missed() // two attempts of one number: which of them stands there only the broker knows
	default:
		l.takeOpen(r, o, a)
	}
}

// hearClaim ends sending to a round: its one batch is made, and holds the reports that the stage had opened.
func (l *loop) hearClaim(got stream.Message, number stream.Round) {
	if r := l.rounds[number]; r != nil && r.closed == nil && !r.claimed && l.records.claimed(got, r.manifest) {
		r.claimed = true
		l.learned++
	}
}

// hearClose remembers the Close of a round that events of this client are in, until the Open beside it is read: by each
// device of the round, so not by all at one time.
func (l *loop) hearClose(ctx context.Context, got stream.Message, at stream.Address) {
	r := l.rounds[at.Round]
	if r == nil || r.closed != nil || r.closing != nil {
		return
	}
	c, ok := l.records.close(got, r.manifest)
	if !ok {
		return
	}
	if c.Void || len(r.bundles) == 0 {
		l.takeClose(ctx, r, c)
		return
	}
	r.closing = c
	l.learned++
	r.judged = time.Now().Add(l.chance.within(l.apart(r.users(), r.events())))
}

// judge reads the Open beside a Close that was heard, until it is there, or looks once for a Close that was not.
func (l *loop) judge(ctx context.Context, r *round) {
	if r.closing == nil {
		r.judged = time.Time{}
		l.followAttempts(ctx, r)
		return
	}
	r.judged = time.Now().Add(l.chance.around(l.Poll))
	l.takeClose(ctx, r, r.closing)
}
