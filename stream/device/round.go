package device

import (
	"math"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxAttempts bounds the attempts of one round whose Close is read: the newest ones, and those that events were
// published to.
const maxAttempts = 16

// An event holds the rows of one user, or one block of an organisation's rows, with its participation and its callers.
type event struct {
	record participation.Record
	person string // by the name that its application has; empty: its key names it
	grant  []byte // its token; nil: it has none yet, or the task needs none
	// the data of its reports; a row that could not be mapped is the zero Example, which no row of the task maps to
	block   block.Block
	work    func() block.Block // computes the block; nil: it was computed, or is not known
	people  uint64             // whom the event's reports are about; 0: each row is a unit
	rows    uint64             // of the input that the event represents; 0 if the event is known from the store alone
	before  uint64             // blocks of the same organisation before this one
	present bool               // the block is known: false for an event known from the store alone
	// refuses an event of another unit than the task's reports; nil: it was made for the task
	fits      func(*consent.Agreement) error
	over      func()              // called when the block is not needed any more; nil: nobody waits for that
	terms     *consent.Agreement  // terms of a silo that has only this event; nil for all others
	pinned    []participation.Key // of a silo, the people of each block, see participation.Pin
	early     *participation.Draw // drawn, and charged nothing for yet: it has no place; nil: nothing is drawn
	draw      uint32              // decides when it joins while more wait than a round takes
	callbacks []func(Outcome)     // of its callers: called by the loop's goroutine; must not block
}

// units returns the number of units that the event is about: people, or else rows.
func (e *event) units() uint64 {
	if e.people > 0 {
		return e.people
	}
	return e.rows
}

// A bundle is the events that travel in one message. They are charged, sent and acknowledged together.
type bundle struct {
	events   []*event
	inFlight bool // its publish has no reply yet
	tried    bool // it was published by this process
	gone     bool // it goes to no further attempt at its round
	// message holds the bytes that were sent to the attempt of, shared between two operators; nil: they are to be shared.
	// The courier writes both while the bundle is in flight.
	message []byte
	of      participation.Attempt
}

// record returns the record of the bundle's first event: all its events have the same sends and replies.
func (b *bundle) record() *participation.Record { return &b.events[0].record }

// exhausted reports whether one of the events has used up its reports.
func (b *bundle) exhausted(most uint32) bool {
	for _, e := range b.events {
		if e.record.Exhausted(most) {
			return true
		}
	}
	return false
}

// A round is one in which events of this client take part, or the newest.
type round struct {
	number   stream.Round
	manifest stream.Hash
	message  *wire.Round // nil for rounds known from the store alone
	place    manifest.Place
	open     *wire.Open            // newest attempt known
	join     *wire.Join            // its other part, of two operators; nil: it is not known, or there is one operator
	attempt  participation.Attempt // open's, and join's
	closed   *participation.Closed
	closing  *wire.Close           // its Close, received with a wake and not yet checked beside its Open
	judged   time.Time             // when to read its outcome; zero: a wake or a poll will bring it
	done     bool                  // closed, as the store proves
	claimed  bool                  // by its newest attempt, according to a wake
	gone     bool                  // its records were removed, or it is lost and the task went on: no Close will come
	lost     bool                  // another round is on the broker under its number
	missing  time.Time             // since when the broker does not show it, after a lost connection; zero: it does
	opened   time.Time             // when this client saw open, and join where there is one
	lower    participation.Attempt // an older attempt that is read though a newer one is known
	since    time.Time             // when it was the newest for the first time
	pairing
	share
}

// A share holds the events that this client has in a round.
type share struct {
	bundles []*bundle
	owed    []*bundle // among bundles: bundles that the newest attempt may not have
	most    uint64    // events that the round takes of this client: its cohort, or one where reports are about blocks of rows
	joined  uint64    // events that joined, those of settled bundles included, without events that dropped out
}

// lag is longer than any replica lags.
const lag = 30 * time.Second

// wentBack reports whether the broker has lost the newest attempt known: for longer than a replica lags, an
// attempt of a lower number is read, to which a device that waits for a higher number would never send.
func (r *round) wentBack(a participation.Attempt, now time.Time) bool {
	if r.open == nil || a.Number >= r.attempt.Number || a != r.lower {
		r.lower, r.since = a, now
		return false
	}
	return now.Sub(r.since) > lag
}

// phase returns the number of the first phase of a round's stint in the plan, from 1.
func (r *round) phase() uint32 { return uint32(r.place.Stint.Index) + 1 }

// later reports whether a round comes after the first one of its interactive phase, so that its users took part in the
// phase before. Silos draw again for each round: all of them are charged for all rounds, whichever of them take part.
func (r *round) later() bool {
	return r != nil && r.message != nil && r.place.Interactive() && r.message.Step > r.place.Stint.First &&
		r.place.Plan.GetSilos() == 0
}

// member reports whether an event belongs to the round: an earlier round of its interactive phase counted it, or
// may have.
func (r *round) member(e *event) bool {
	return r.later() && e.record.Stays(r.phase()) && (e.record.State == participation.Counted ||
		e.record.State == participation.Unknown)
}

// mayJoin reports whether an event may be charged to the round.
func (r *round) mayJoin(e *event) bool {
	p := &e.record
	switch {
	case p.State == participation.Fresh:
		return true
	case p.State == participation.Charged || r.number <= p.Draw.Round || stream.Step(r.message.Step) <= p.Draw.Step ||
		r.phase() < p.Draw.Phase:
		return false
	}
	return p.Stays(r.phase()) || (p.State == participation.Uncounted && (r.phase() != p.Draw.Phase || p.Draw.Most <= 1))
}

// events returns the number of this client's events that wait for the outcome of the round.
func (r *round) events() (n uint64) {
	for _, b := range r.bundles {
		n += uint64(len(b.events))
	}
	return n
}

// unjudged reports whether the outcome is known to exist and a time is set to read it.
func (r *round) unjudged() bool { return r.closed == nil && !r.judged.IsZero() }

// users returns the number of users that the round takes; 0 if only the store knows the round.
func (r *round) users() uint64 { return r.place.Cohort }

// joinable reports whether the round takes events of this client: it is open, and not full of them.
func (r *round) joinable() bool {
	return r.receives() && r.joined < r.most
}

// receives reports whether the stage may still open reports that are sent to the round.
func (r *round) receives() bool {
	return r != nil && r.paired() && r.closed == nil && r.closing == nil && !r.done && !r.claimed && r.missing.IsZero()
}

// elapsed returns how long the newest attempt has been open: by this client's clock since it saw the Open, or by the
// time in the Open, whichever is longer. A device that comes late to a waiting round must not keep the round waiting.
// With two operators it counts from the Join, because otherwise a late Join would make all devices join at once; a
// helper whose clock is behind begins no attempt before its Open.
func (r *round) elapsed(now time.Time) time.Duration {
	begun := r.open.StartedUnixMs
	if r.join != nil {
		begun = max(begun, r.join.StartedUnixMs)
	}
	return max(now.Sub(r.opened), now.Sub(time.UnixMilli(begun)))
}

// joins returns the time after the Open of the newest attempt at which an event with this draw joins.
func (r *round) joins(draw uint32) time.Duration {
	return stream.RampOf(r.open.JoinProbability, r.open.JoinDoublingMs).After(draw)
}

// turn returns the draw of an event, adjusted where organisations report by turns, which they do in a plan of one pass.
// In many passes each draw is as good as another, whichever silos took part before.
func (r *round) turn(e *event, draw uint32) uint32 {
	silos := r.place.Plan.GetSilos()
	if silos == 0 || r.place.Interactive() {
		return draw
	}
	return stream.Turn(draw, e.before, uint64(r.number-1)*r.place.Cohort, silos, r.place.Cohort)
}

// reopen marks all bundles to be sent to another attempt. If events may be sent to a limited number of attempts, events
// that are not sent to this one leave their places to others; otherwise a client that had sent a whole cohort would
// wait for a Close that only its own reports can bring about.
func (s *share) reopen(attempt participation.Attempt, of participation.Attempts) {
	if s.owed = append(s.owed[:0:0], s.bundles...); of.Most == math.MaxUint32 {
		return
	}
	s.joined = 0
	for _, b := range s.bundles {
		if b.record().MaySend(attempt, of) {
			s.joined += uint64(len(b.events))
		}
	}
}

// attempts returns the attempts that may have a Close, newest first.
func (r *round) attempts() []stream.Attempt {
	var list []stream.Attempt
	seen := make(map[stream.Attempt]bool)
	add := func(a stream.Attempt) {
		if a > 0 && !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	if r.open != nil {
		for a := r.attempt.Number; a > 0 && r.attempt.Number-a < maxAttempts; a-- {
			add(a)
		}
	}
	for _, b := range r.bundles {
		for _, s := range b.record().Sends {
			add(s.Attempt.Number)
		}
	}
	return list
}
