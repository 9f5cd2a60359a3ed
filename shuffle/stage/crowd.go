package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// joinSlack is how many reports are asked for in a place of the cohort: with 1.5 a round fills at once, and an event that
// joins is left over with probability 1/3, nine times in a row with 5e-5.
const joinSlack = 1.5

// A crowd is what the last attempts of this process say about how many devices wait: numbers that the broker sees too, and
// nothing that a report holds. It dies with the process, and then everybody may join.
type crowd struct {
	probability uint32 // of the attempt
	opened      time.Time
	deadline    time.Duration
	target      float64   // users that this process wants
	users       uint64    // accepted
	examined    uint64    // messages
	behind      uint64    // messages that waited behind the last one
	last        time.Time // when the last message came; opened before
	cutoff      uint64    // highest sequence of a message

	// The attempt before: reports that came for it after its last one was examined show only while this one is open.
	before       *crowd
	missed, late uint64 // sequences between its cutoff and the first of this attempt; its reports that were examined here
}

// open turns to a new attempt and answers the join probability that its Open carries.
func (c *crowd) open(target float64, deadline time.Duration, now time.Time) uint32 {
	old := *c
	old.before = nil
	*c = crowd{probability: c.next(now), opened: now, last: now, deadline: deadline, target: target, before: &old}
	return c.probability
}

// next is the share at which as many users come as a cohort takes, with some to spare.
func (c *crowd) next(now time.Time) uint32 {
	if c.opened.IsZero() {
		return 0
	}
	if c.users == 0 {
		return stream.JoinProbability(c.share(now))
	}
	waiting := c.waiting(c.behind)
	if b := c.before; b != nil && b.users > 0 {
		waiting = max(waiting, b.waiting(max(b.behind, c.missed+c.late))-float64(b.users+c.users))
	}
	return stream.JoinProbability(joinSlack * c.target / waiting)
}

func (c *crowd) share(now time.Time) float64 {
	return stream.JoinShare(c.probability, now.Sub(c.opened), c.deadline)
}

// waiting is how many users waited for the attempt, of whose reports so many were left over. Garbage counts little: of what
// was left over unopened as many are taken to be valid as of what was opened.
func (c *crowd) waiting(over uint64) float64 {
	return float64(c.users) * (1 + float64(over)/float64(c.examined)) / c.share(c.last)
}

// saw notes a message that was examined, and how many wait behind it.
func (c *crowd) saw(sequence, behind uint64, now time.Time) {
	if b := c.before; b != nil && c.examined == 0 && b.cutoff > 0 && sequence > b.cutoff {
		c.missed = sequence - b.cutoff - 1
	}
	c.behind, c.last, c.cutoff = behind, now, max(c.cutoff, sequence)
	c.examined++
}
