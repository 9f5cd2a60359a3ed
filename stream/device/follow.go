package device

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// poll reads the records this device needs and has not seen. It returns an error only if the policy refuses
// or the store fails; reads that the broker does not answer are retried at the next poll.
func (l *loop) poll(ctx context.Context) error {
	before, begun := l.learned, time.Now()
	if l.contract.agreement == nil {
		if err := l.agree(ctx); err != nil {
			return err
		}
	}
	if l.contract.agreement != nil {
		if err := l.follow(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	// An event that came while this poll read no rounds causes the next poll at once.
	if l.resting = l.contract.agreement != nil && (l.has() == nothing || !l.over() && l.looked.Before(begun)); l.resting {
		l.pace.rests(now)
		return nil
	}
	l.pace.looked(now, l.learned > before, l.patience())
	if l.unsure {
		l.pace.soon(now, lag/4) // a round is missing
	}
	return nil
}

// follow reads rounds, attempts and the End.
func (l *loop) follow(ctx context.Context) error {
	before, was := l.learned, l.current
	if !l.over() && l.has() != nothing {
		l.looked = time.Now()
		if m, hash, ok := l.records.newestRound(ctx, l.currentNumber(), time.Now().Round(0)); ok {
			if err := l.takeRound(ctx, m, hash); err != nil {
				return err
			}
		}
		l.unsure = l.unsure && l.learned == before && l.lookBack(ctx)
	}
	for _, r := range l.rounds {
		l.followAttempts(ctx, r)
	}
	// Where the task was ended instead of closing the newest round, that round remains without a Close: only
	// devices that were in it before send to it.
	if !l.over() && (l.learned == before || l.current != was) {
		if got, ok := l.records.get(ctx, l.Task.End(), false); ok {
			l.takeEnd(got)
		}
	}
	return nil
}

// agree reads the Task and decides, once, whether to take part.
func (l *loop) agree(ctx context.Context) error {
	t, hash, ok := l.records.readTask(ctx)
	if !ok {
		return nil
	}
	pin, found, err := l.Store.Pin()
	if err != nil {
		return fmt.Errorf("read pin: %w", err)
	}
	var pinned *participation.Pin
	if found {
		pinned = &pin
	}
	p, err := l.propose(t, hash, pinned, l.Transport.Limits().MaxPayload, l.reports.hooks.onAgree)
	if err != nil {
		return err
	}
	agreement := p.agreement
	l.accounts.agreement, l.records.agreement = p.terms, agreement
	// an event is a person, under the person's key
	l.accounts.perUser = l.UserKeys || agreement.Spec.ByUser() && agreement.Spec.Silo == nil
	if l.compareClock(ctx); l.clock.unknown {
		return nil
	}
	if p.terms != nil {
		if err := l.accounts.enter(found, uint64(len(l.events))); err != nil {
			return err
		}
	}
	l.Logger.Info("agreed to the task", "task_hash", fmt.Sprintf("%x", hash), "trust", agreement.Spec.Privacy.Trust,
		"epsilon", cmp.Or(p.terms, agreement).Guarantee.Epsilon, "delta", agreement.Delta, "honest_fraction_of_every_cohort",
		agreement.HonestFraction.String())
	l.contract.accept(p, newOrder())
	l.progress()
	return nil
}

func (l *loop) takeEnd(got stream.Message) {
	if end, ok := l.records.end(got); ok {
		l.endedAt = time.Now()
		l.learned++
		l.Logger.Info("the task has ended", "last_round", end.LastRound, "reason", end.Reason)
		close(l.ended)
		if l.has() != nothing { // for the Close of the last round
			l.pace.soon(l.endedAt, min(l.spread(), l.CloseWait/2))
		}
		l.progress()
	}
}

// currentNumber returns the number of the newest round known, 0 before the first.
func (l *loop) currentNumber() stream.Round {
	if l.current == nil {
		return 0
	}
	return l.current.number
}

// takeRound takes up a round that is newer than all others. An older one, read or heard, changes nothing, and one in
// the place of a round that was answered is not answered: see replaced.
func (l *loop) takeRound(ctx context.Context, m *wire.Round, hash stream.Hash) error {
	number := stream.Round(m.Round)
	if number < l.currentNumber() || (number == l.currentNumber() && hash == l.current.manifest) {
		return nil
	}
	known, err := l.known(number)
	if err != nil {
		return err
	}
	if known != nil && *known != hash {
		l.replaced(number)
		return nil
	}
	if err := l.contract.bound().CheckRound(m, hash, known); err != nil {
		return err
	}
	if l.current != nil {
		if err := l.contract.agreement.CheckOrder(l.current.message, m); err != nil && !l.isReplaced(ctx, l.current) {
			return err
		}
	}
	at, _ := manifest.Follows(l.contract.agreement.Task, l.contract.agreement.Hash, m) // CheckRound knows that it does
	if err := l.reports.prepare(at.Index, m); err != nil {
		return err
	}
	r := l.rounds[number]
	if r == nil {
		r = &round{number: number, manifest: hash}
		l.rounds[number] = r
	}
	if r.message, r.place, r.most = m, at, at.Cohort; l.contract.agreement.Spec.Silo != nil {
		r.most = 1
	}
	if old := l.current; old != nil && len(old.bundles) == 0 {
		delete(l.rounds, old.number)
	}
	l.goesOn()
	l.current, l.records.there = r, time.Now().Round(0)
	l.learned++
	l.queue.recall(l.stands())
	l.progress()
	return nil
}

// known returns the manifest hash under which a round was seen, or joined in an earlier run; nil if it is unknown.
func (l *loop) known(number stream.Round) (*stream.Hash, error) {
	if r := l.rounds[number]; r != nil {
		return &r.manifest, nil
	}
	hash, found, err := l.Store.Manifest(number)
	if err != nil || !found {
		return nil, err
	}
	return &hash, nil
}

// followAttempts looks for the newest attempt at a round and for its Close.
func (l *loop) followAttempts(ctx context.Context, r *round) {
	if r.closed != nil || (r != l.current && len(r.bundles) == 0) || l.has() == nothing {
		return
	}
	if o, a, ok := l.records.latestOpen(ctx, r.number, r.manifest); ok {
		if r.wentBack(a, time.Now()) {
			r.open = nil
		}
		l.takeOpen(r, o, a)
	}
	for _, a := range r.attempts() {
		if c, ok := l.records.readClose(ctx, r.number, a, r.manifest); ok && l.takeClose(ctx, r, c) {
			return
		}
	}
	// The records of a round so far behind are removed when they are old. Its outcome is then settled without them.
	if len(r.bundles) > 0 && !r.gone && r.number+stream.KeptRounds < l.currentNumber() &&
		l.records.removed(ctx, r.number) {
		l.Logger.Warn("the records of a round are gone, and nothing will tell who was counted: its users stay charged",
			"round", r.number,
			"newest_round", l.currentNumber(), "users", r.events())
		r.gone = true
		l.learned++
	}
}

// takeOpen takes up an attempt that is newer than those known, or another of the same number, which the broker may
// have lost.
func (l *loop) takeOpen(r *round, o *wire.Open, a participation.Attempt) {
	if r.closed != nil || (r.open != nil && (a == r.attempt || a.Number < r.attempt.Number)) {
		return
	}
	if r.open != nil && len(r.bundles) > 0 {
		l.Logger.Info("the stage opened the round again", "round", r.number, "attempt", o.Attempt,
			"sends_again", !l.contract.agreement.HasFloors())
	}
	r.open, r.attempt, r.opened, r.claimed = o, a, time.Now(), false
	r.owed = append(r.owed[:0:0], r.bundles...)
	if l.contract.agreement.HasFloors() {
		r.joined = r.standing(a)
	}
	if r == l.current {
		l.queue.recall(l.stands())
	}
	l.learned++
	l.progress()
}

// takeClose takes up the outcome of a round. If it decides about events of this client, the Open of the attempt is
// needed too, and takeClose returns false while that cannot be read.
func (l *loop) takeClose(ctx context.Context, r *round, c *wire.Close) bool {
	closed := participation.Closed{Round: r.number, Manifest: r.manifest, Void: c.Void}
	if len(r.bundles) > 0 {
		var ok bool
		if closed, ok = l.records.closed(ctx, c); !ok {
			return false
		}
	}
	r.closed, r.closing = &closed, nil
	l.learned++
	if c.Void {
		l.Logger.Warn("the round is void: its users stay charged", "round", r.number)
	}
	return true
}
