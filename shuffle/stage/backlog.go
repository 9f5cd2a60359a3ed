package stage

import (
	"cmp"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A backlog estimates the number of events that wait, from the last attempts of this process. It uses only numbers that
// the broker sees too, and no content of reports. It ends with the process; the next process begins with the number in
// the plan.
//
// An event that is sent to a full round may have been released, whatever answer its device got. So it costs its user a
// round, and most users cannot pay for a second one. Therefore no more events are invited than there are places: the
// share grows if too few come.
type backlog struct {
	of       place
	ramp     stream.Ramp // of the attempt
	opened   time.Time
	users    uint64        // accepted
	examined uint64        // messages
	behind   uint64        // messages that waited behind the last one
	cutoff   uint64        // highest sequence of a message
	came     [2]time.Time  // by the broker's clock, when the first message and the newest one did
	seen     [2]time.Time  // when the first and the last one were examined
	work     time.Duration // for one user, as attempts showed it

	// The attempt before: reports for it that came after its last examined report show only while this attempt is open.
	before *backlog
	// sequences between its cutoff and the first of this attempt, as many as most; its reports that were examined here
	missed, late uint64
	most         uint64 // messages that a broker holds of one attempt; 0: not known
}

// usualWork is the time that a report is assumed to take until an attempt with at least enoughWork users has shown it.
const (
	usualWork  = 300 * time.Microsecond
	enoughWork = 100
)

// open turns to a new attempt and returns the ramp that its Open announces. target is its cohort; planned is the number
// of users that the plan has for this round and those after it, the only information before the first attempt. again is
// true if users who joined an earlier attempt at the round send again at once: their number is not known, so hardly any
// others are invited before these have come. few is true if the planned users are organisations, each with few reports
// to lose: most of a cohort of them are invited one after the other.
func (b *backlog) open(target, planned float64, few, again bool, deadline time.Duration, now time.Time) stream.Ramp {
	old := *b
	old.before = nil
	work := cmp.Or(b.work, usualWork)
	if b.users >= enoughWork {
		work = b.seen[1].Sub(b.seen[0]) / time.Duration(b.users)
	}
	share := b.next(target, planned, now)
	if few { // too few for an estimate from those who came
		share = target / planned
	}
	switch {
	case again:
		share = min(share, 1) / comeBack
	case few:
		share /= fewer
	}
	ramp := stream.NewRamp(share, time.Duration(target)*work, deadline)
	*b = backlog{ramp: ramp, opened: now, work: work, before: &old, most: old.most}
	return ramp
}

// comeBack is the factor by which fewer users are invited where others send again: four doublings bring the share back
// to where it was.
const comeBack = 16

// fewer is the factor by which fewer organisations are invited at once than there are places, so that hardly more than
// the places come by chance.
const fewer = 4

// spare is the number of users that are asked for beyond the places of a round: the parts of a round that several
// gateways have are rounded.
const spare = 3

// next returns the share at which as many users come as the cohort takes.
func (b *backlog) next(target, planned float64, now time.Time) float64 {
	if b.opened.IsZero() {
		return (target + spare) / planned
	}
	if b.users == 0 {
		return b.ramp.Share(now.Sub(b.opened))
	}
	waiting := b.waiting(b.behind)
	if prior := b.before; prior != nil && prior.users > 0 {
		waiting = max(waiting, prior.waiting(max(prior.behind, b.missed+b.late)))
	}
	return (target + spare) / waiting
}

// waiting returns the number of users that waited for the attempt, given how many messages of their reports were left
// over. Garbage counts little: of the messages left unopened, the same share is taken to be valid as of those opened.
// Users who sent are not subtracted: a gateway has others for them. The share is taken at the time when the newest
// message came, and not when it was examined: a stage may be long behind.
func (b *backlog) waiting(over uint64) float64 {
	return float64(b.users) * (1 + float64(over)/float64(b.examined)) / b.ramp.Share(b.came[1].Sub(b.came[0]))
}

// saw notes a message that was examined, when it had come, and how many wait behind it.
func (b *backlog) saw(sequence, behind uint64, came, now time.Time) {
	if prior := b.before; prior != nil && b.examined == 0 && prior.cutoff > 0 && sequence > prior.cutoff {
		b.missed = sequence - prior.cutoff - 1
		if b.most > 0 { // what is beyond was for other attempts, or the broker's numbers jumped where a stream was made again
			b.missed = min(b.missed, b.most)
		}
	}
	if b.examined == 0 {
		b.came, b.seen[0] = [2]time.Time{came, came}, now
	}
	if came.After(b.came[1]) {
		b.came[1] = came
	}
	b.behind, b.seen[1], b.cutoff = behind, now, max(b.cutoff, sequence)
	b.examined++
}
