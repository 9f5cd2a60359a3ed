package device

import (
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// rounds holds what is known of the task's rounds, and of its end. It decides what to read next, and what each record
// changes, whether it was read or came with a wake.
type rounds struct {
	do       perform
	now      func() time.Time
	log      *slog.Logger
	chance   chance
	contract *contract
	poll     time.Duration // Settings.Poll

	known   roundTable
	endedAt time.Time    // when the End was read; zero: the task goes on
	last    stream.Round // of the End
	looked  time.Time    // when a newer round was looked for last
	learned uint64       // new records, read or received with a wake
	unsure  bool         // a record may have been written, or lost, without a wake
	back    *setback
}

// over reports whether the task has ended.
func (r *rounds) over() bool { return !r.endedAt.IsZero() }

// givenUp reports whether the End gave a round up: no batch of it is applied, also if there is one, and it never closes
// (docs/reference/protocol.md, rule 12).
func (r *rounds) givenUp(one *round) bool { return r.over() && one.number > r.last }

// joinable reports whether the newest round takes events of this client.
func (r *rounds) joinable() bool { return !r.over() && r.known.newest.joinable() }

// gathering reports whether the members of a round wait a moment for members whose outcome is not known yet, so
// that all of them join in one order.
func (r *rounds) gathering() bool {
	return r.joinable() && r.known.newest.later() && r.known.newest.elapsed(r.now()) < r.poll && r.known.absent() > 0
}

// readNew reads new rounds and attempts and the End, as long as this client has something to do.
func (r *rounds) readNew(busy func() bool) error {
	before, was := r.learned, r.known.newest
	if !r.over() && busy() {
		r.looked = r.now()
		if got := r.do(effect{call: readNewest, number: r.known.number()}); got.found {
			if err := r.takeRound(got.round, got.hash); err != nil {
				return err
			}
		}
		r.unsure = r.unsure && r.learned == before && r.back.checkNewest()
	}
	for _, one := range r.known.sorted() {
		if busy() {
			r.readAttempts(one)
		}
	}
	// Where the task was ended instead of closing the newest round, that round remains without a Close: only
	// devices that were in it before send to it.
	if !r.over() && (r.learned == before || r.known.newest != was) {
		if got := r.do(effect{call: readEnd}); got.found {
			r.takeEnd(got.end)
		}
	}
	return nil
}

// takeRound takes up a round that is newer than all others. An older one changes nothing. A device takes no part in a
// round that the learner put under the number of one in which the device took part: see setback.markReplaced.
func (r *rounds) takeRound(m *wire.Round, hash stream.Hash) error {
	number := stream.Round(m.Round)
	if number < r.known.number() || (number == r.known.number() && hash == r.known.newest.manifest) {
		return nil
	}
	known, err := r.manifest(number)
	if err != nil {
		return err
	}
	if known != nil && *known != hash {
		r.back.markReplaced(number)
		return nil
	}
	if err := r.contract.bound().CheckRound(m, hash, known); err != nil {
		return err
	}
	agreement := r.contract.agreement
	if r.known.newest != nil {
		if err := agreement.CheckOrder(r.known.newest.message, m); err != nil && !r.back.isReplaced(r.known.newest) {
			return err
		}
	}
	at, _ := manifest.Follows(agreement.Task, agreement.Hash, m) // CheckRound knows that it does
	if got := r.do(effect{call: prepareReports, number: number, phase: at.Index, message: m}); got.err != nil {
		return got.err
	}
	one := r.known.of[number]
	if one == nil {
		one = &round{number: number, manifest: hash}
		r.known.of[number] = one
	}
	if one.message, one.place, one.most = m, at, at.Cohort; agreement.Spec.Silo != nil {
		one.most = 1
	}
	if old := r.known.newest; old != nil && len(old.bundles) == 0 {
		delete(r.known.of, old.number)
	}
	*r.back = setback{rounds: r}
	r.known.abandonLost()
	r.known.newest = one
	r.learned++
	r.do(effect{call: tellRound, number: number})
	return nil
}

// manifest returns the hash under which a round was seen, or joined in an earlier run; nil if it is unknown.
func (r *rounds) manifest(number stream.Round) (*stream.Hash, error) {
	if one := r.known.of[number]; one != nil {
		return &one.manifest, nil
	}
	got := r.do(effect{call: readManifest, number: number})
	if got.err != nil || !got.found {
		return nil, got.err
	}
	return &got.hash, nil
}

// readAttempts reads the newest attempt at a round and its Close, unless that is known or nobody here waits for it.
func (r *rounds) readAttempts(one *round) {
	if one.closed != nil || (one != r.known.newest && len(one.bundles) == 0) {
		return
	}
	if got := r.do(effect{call: readOpen, number: one.number, round: one}); got.found {
		if one.wentBack(got.attempt, r.now()) {
			one.open = nil
		}
		r.takeOpen(one, got.open, got.attempt)
		r.readJoin(one)
	}
	for _, a := range one.attempts() {
		if got := r.do(effect{call: readClose, number: one.number, round: one, attempt: a}); got.found && r.takeClose(one, got.close) {
			return
		}
	}
	// The records of a round so far behind are removed when they are old. Its outcome is then settled without them.
	if len(one.bundles) > 0 && !one.gone && one.number+stream.KeptRounds < r.known.number() &&
		r.do(effect{call: checkRemoved, number: one.number}).found {
		r.log.Warn("the records of a round are gone, and nothing will tell who was counted: its users stay charged",
			"round", one.number,
			"newest_round", r.known.number(), "users", one.events())
		one.gone = true
		r.learned++
	}
}

// takeOpen takes up an attempt that is newer than those known, or another of the same number, which the broker may
// have lost.
func (r *rounds) takeOpen(one *round, o *wire.Open, a participation.Attempt) {
	if one.closed != nil || (one.open != nil && (a.Open == one.attempt.Open || a.Number < one.attempt.Number)) {
		return
	}
	one.open, one.join, one.attempt, one.claimed = o, nil, a, false
	r.learned++
	if !r.contract.agreement.HasOperators() {
		r.begin(one)
	} else if j := one.early; j != nil && consent.CheckPair(o, a.Open, j.join) == nil {
		r.takeJoin(one, j.join, j.hash)
	} else {
		r.do(effect{call: tellProgress})
	}
}

// begin lets a completely known attempt take reports.
func (r *rounds) begin(one *round) {
	of := r.contract.agreement.Attempts()
	if !one.opened.IsZero() && len(one.bundles) > 0 {
		r.log.Info("the stage opened the round again", "round", one.number, "attempt", one.attempt.Number, "sends_again",
			of.Most > 1)
	}
	one.opened = r.now()
	one.reopen(one.attempt, of)
	r.do(effect{call: tellProgress})
}

// takeClose takes up the outcome of a round. If it decides about events of this client, the Open of the attempt is
// needed too, and takeClose returns false while that cannot be read. It takes no Close of a round that was given up.
func (r *rounds) takeClose(one *round, c *wire.Close) bool {
	if r.givenUp(one) {
		return false
	}
	closed := participation.Closed{Round: one.number, Manifest: one.manifest, Void: c.Void}
	if len(one.bundles) > 0 {
		got := r.do(effect{call: readBeside, number: one.number, close: c})
		if !got.found {
			return false
		}
		closed = got.closed
	}
	one.closed, one.closing = &closed, nil
	r.learned++
	if c.Void {
		r.log.Warn("the round is void: its users stay charged", "round", one.number)
	}
	return true
}

// takeEnd records that the task has ended.
func (r *rounds) takeEnd(end *wire.End) {
	r.endedAt, r.last = r.now(), stream.Round(end.LastRound)
	for _, one := range r.known.sorted() {
		if r.givenUp(one) {
			one.closing = nil
		}
	}
	r.learned++
	r.log.Info("the task has ended", "last_round", end.LastRound, "reason", end.Reason)
	r.do(effect{call: tellEnd})
}

// hearsRound reports whether a wake about the round of a number may change anything.
func (r *rounds) hearsRound(number stream.Round) bool {
	return !r.over() && (number > r.known.number() || r.known.of[number] != nil)
}

// hearRound takes a Round that came with a wake. spread is the time over which the devices of the task spread a read
// that all of them make.
func (r *rounds) hearRound(m *wire.Round, hash stream.Hash, spread time.Duration) error {
	if known := r.known.of[stream.Round(m.Round)]; known != nil {
		if known.manifest != hash {
			r.back.markReplaced(known.number)
		}
		return nil
	}
	for _, one := range r.known.sorted() { // its Close was before, and may still be on its way
		if len(one.bundles) > 0 && one.closed == nil && one.judged.IsZero() {
			one.judged = r.now().Add(r.poll + r.chance.within(spread))
		}
	}
	return r.takeRound(m, hash)
}

// hearOpen takes an attempt that came with a wake. It returns false if another attempt of the same number is known, so
// that the one on the broker has to be read.
func (r *rounds) hearOpen(one *round, o *wire.Open, a participation.Attempt) bool {
	if one.open != nil && a.Number == one.attempt.Number && a.Open != one.attempt.Open {
		return false
	}
	r.takeOpen(one, o, a)
	return true
}

// hearClaim ends sending to a round: its one batch is made, and holds the reports that the stage had opened.
func (r *rounds) hearClaim(one *round) {
	one.claimed = true
	r.learned++
}

// hearClose remembers the Close of a round that events of this client are in, until the Open beside it is read: by each
// device of the round, at a time of its own within spread.
func (r *rounds) hearClose(one *round, c *wire.Close, spread time.Duration) {
	if r.givenUp(one) {
		return
	}
	if c.Void || len(one.bundles) == 0 || r.contract.agreement.HasOperators() { // its Open has not to be read
		r.takeClose(one, c)
		return
	}
	one.closing = c
	r.learned++
	one.judged = r.now().Add(r.chance.within(spread))
}

// judgeDue reads outcomes that are due: for a Close that came with a wake its Open, until that is there; otherwise the
// Close, once.
func (r *rounds) judgeDue(now time.Time, busy func() bool) {
	for _, one := range r.known.sorted() {
		switch {
		case !one.unjudged() || now.Before(one.judged):
		case one.closing != nil:
			one.judged = r.now().Add(r.chance.around(r.poll))
			r.takeClose(one, one.closing)
		default:
			if one.judged = (time.Time{}); busy() {
				r.readAttempts(one)
			}
		}
	}
}
