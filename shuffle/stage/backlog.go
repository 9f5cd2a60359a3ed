package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// joinSlack is how many reports are asked for in a place of the cohort: with 1.5 a round fills at once, and an event that
// joins is left over with probability 1/3, nine times in a row with 5e-5.
const joinSlack = 1.5

// A backlog is what the last attempts of this process say about how many devices wait: numbers that the broker sees too, and
// nothing that a report holds. It dies with the process, and then everybody may join.
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

// open turns to a new attempt and returns the join probability that its Open carries.
func (b *backlog) open(target float64, deadline time.Duration, now time.Time) uint32 {
	old := *b
	old.before = nil
	*b = backlog{probability: b.next(now), opened: now, last: now, deadline: deadline, target: target, before: &old}
	return b.probability
}

// next is the share at which as many users come as a cohort takes, with some to spare.
func (b *backlog) next(now time.Time) uint32 {
	if b.opened.IsZero() {
		return 0
	}
	if b.users == 0 {
		return stream.JoinProbability(b.share(now))
	}
	waiting := b.waiting(b.behind)
	if prior := b.before; prior != nil && prior.users > 0 {
		waiting = max(waiting, prior.waiting(max(prior.behind, b.missed+b.late))-float64(prior.users+b.users))
	}
	return stream.JoinProbability(joinSlack * b.target / waiting)
}

func (b *backlog) share(now time.Time) float64 {
	return stream.JoinShare(b.probability, now.Sub(b.opened), b.deadline)
}

// waiting is how many users waited for the attempt, of whose reports so many were left over. Garbage counts little: of what
// was left over unopened as many are taken to be valid as of what was opened.
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
