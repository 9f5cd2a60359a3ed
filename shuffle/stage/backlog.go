package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A backlog is what the last attempts of this process say about how many events wait: numbers that the broker sees too, and
// nothing that a report holds. It dies with the process; then the plan says how many there may be.
//
// An event that is sent to a round that has no place for it may have been released, whatever its device was told, so it costs its user
// what a round costs, and most users have no second one. So no more are asked for than there are places: the share grows where too few come.
type backlog struct {
	probability uint32 // of the attempt
	opened      time.Time
	deadline    time.Duration
	target      float64   // users of a cohort
	users       uint64    // accepted
	examined    uint64    // messages
	behind      uint64    // messages that waited behind the last one
	last        time.Time // when the last message came; opened before
	cutoff      uint64    // highest sequence of a message

	// The attempt before: reports that came for it after its last one was examined show only while this one is open.
	before       *backlog
	missed, late uint64 // sequences between its cutoff and the first of this attempt; its reports that were examined here
}

// open turns to a new attempt and returns the join probability that its Open carries. planned is how many users the plan has for
// this round and those after it: what is known before any attempt was seen.
func (b *backlog) open(target, planned float64, deadline time.Duration, now time.Time) uint32 {
	old := *b
	old.before = nil
	*b = backlog{probability: b.next(target, planned, now), opened: now, last: now, deadline: deadline, target: target, before: &old}
	return b.probability
}

// next is the share at which as many users come as the cohort takes.
func (b *backlog) next(target, planned float64, now time.Time) uint32 {
	if b.opened.IsZero() {
		return stream.JoinProbability(target / planned)
	}
	if b.users == 0 {
		return stream.JoinProbability(b.share(now))
	}
	waiting := b.waiting(b.behind)
	if prior := b.before; prior != nil && prior.users > 0 {
		waiting = max(waiting, prior.waiting(max(prior.behind, b.missed+b.late)))
	}
	return stream.JoinProbability(target / waiting)
}

func (b *backlog) share(now time.Time) float64 {
	return stream.JoinShare(b.probability, now.Sub(b.opened), b.deadline)
}

// waiting is how many users waited for the attempt, of whose reports so many messages were left over. Garbage counts little: of what
// was left over unopened as many are taken to be valid as of what was opened. Those who sent are not taken off: a gateway has others for them.
func (b *backlog) waiting(over uint64) float64 {
	return float64(b.users) * (1 + float64(over)/float64(b.examined)) / b.share(b.last)
}

// saw notes a message that was examined, and how many wait behind it.
func (b *backlog) saw(sequence, behind uint64, now time.Time) {
	if prior := b.before; prior != nil && b.examined == 0 && prior.cutoff > 0 && sequence > prior.cutoff {
		b.missed = sequence - prior.cutoff - 1
	}
	b.behind, b.last, b.cutoff = behind, now, max(b.cutoff, sequence)
	b.examined++
}
