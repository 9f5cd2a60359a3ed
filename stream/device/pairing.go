package device

import (
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// An attempt of two operators is an Open of the leader and the Join of the helper that names it by its hash. Nobody
// joins, is charged, or sends before a device has both. They come in any order. The one that does not come is read by
// its number, once after a while and whenever the round is read.

// A pairing holds one part of an attempt while the other part is missing.
type pairing struct {
	early  *earlyJoin // a Join received with a wake, of another Open than the known one
	halved time.Time  // when the missing part is read; zero: it is not, or nothing is missing
	reread bool       // another Join of the attempt was received: which one is on the broker has to be read
}

// An earlyJoin is a Join that came before its Open.
type earlyJoin struct {
	join *wire.Join
	hash stream.Hash
}

// paired reports whether the newest attempt is known whole.
func (r *round) paired() bool {
	return r.open != nil && (r.join != nil || !manifest.HasOperators(r.place.Plan))
}

// readJoin reads the Join of the newest attempt at a round, where it is missing or in doubt.
func (r *rounds) readJoin(one *round) {
	if one.closed != nil || one.open == nil || !r.contract.agreement.HasOperators() || one.join != nil && !one.reread {
		return
	}
	one.reread = false
	got := r.do(effect{call: readJoin, number: one.number, round: one, attempt: one.attempt.Number})
	if got.found && got.hash != one.attempt.Join {
		r.takeJoin(one, got.join, got.hash)
	}
}

// takeJoin makes an attempt whole, or another one of the same Open.
func (r *rounds) takeJoin(one *round, j *wire.Join, hash stream.Hash) {
	one.join, one.attempt.Join, one.claimed = j, hash, false
	one.pairing = pairing{}
	r.learned++
	r.begin(one)
}

// hearPart sets the time at which the other part of an attempt is read, by each device at a time of its own within
// spread. Usually a wake brings it earlier.
func (r *rounds) hearPart(one *round, spread time.Duration) {
	if r.contract.agreement.HasOperators() && one.halved.IsZero() {
		one.halved = r.now().Add(r.poll + r.chance.within(spread))
	}
}

// hearJoin takes a Join that came with a wake. sure is false if the Join on the broker may be another one and has to be
// read. An error means that it cannot belong to the Open that it names.
func (r *rounds) hearJoin(one *round, j *wire.Join, hash stream.Hash, spread time.Duration) (sure bool, err error) {
	known := one.open != nil && stream.Hash(j.OpenHash) == one.attempt.Open
	switch {
	case one.closed != nil || known && hash == one.attempt.Join:
	case known:
		if err := consent.CheckPair(one.open, one.attempt.Open, j); err != nil {
			return true, err
		}
		if one.join != nil {
			one.reread = true
			return false, nil
		}
		r.takeJoin(one, j, hash)
	case (one.open == nil || stream.Attempt(j.Attempt) >= one.attempt.Number) &&
		(one.early == nil || j.Attempt >= one.early.join.Attempt):
		one.early = &earlyJoin{j, hash}
		r.learned++
		r.hearPart(one, spread)
	}
	return true, nil
}

// pairDue reads each missing part once, when its time has come.
func (r *rounds) pairDue(now time.Time, busy func() bool) {
	for _, one := range r.known.sorted() {
		if one.halved.IsZero() || now.Before(one.halved) {
			continue
		}
		one.halved = time.Time{}
		if one.closed != nil || !busy() {
			continue
		}
		if j := one.early; j != nil && (one.open == nil || stream.Attempt(j.join.Attempt) > one.attempt.Number) {
			if got := r.do(effect{call: readOpenOf, number: one.number, round: one,
				attempt: stream.Attempt(j.join.Attempt)}); got.found {
				r.takeOpen(one, got.open, got.attempt)
			}
		}
		r.readJoin(one)
	}
}
