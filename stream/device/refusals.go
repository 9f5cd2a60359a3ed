package device

import (
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// mostRefused is the longest time between two tries while the broker refuses, and tryMessages how many messages a try
// has.
const (
	mostRefused = 30 * time.Second
	tryMessages = 16
)

// refusals records that a broker takes no reports, mostly because a stream is full. As long as its newest answers are
// refusals, nobody else is charged, and charged events wait. A few of their messages are tried, or those of one event
// that joins if none waits: at growing intervals, and at once in another attempt, which has an empty queue. All this
// depends on the broker alone.
type refusals struct {
	chance  chance
	wait    time.Duration // to the next try; 0: the newest answers are no refusals
	next    time.Time
	attempt participation.Attempt // that was refused
	count   uint64                // of messages that were refused
	trouble stream.Trouble
}

// told records the answers to one delivery, and returns how many of its messages were refused and how many stored.
func (r *refusals) told(d delivery, poll time.Duration, now time.Time) (refused, taken int) {
	for _, a := range d.acks {
		switch {
		case a.Status == stream.Refused:
			refused++
		case a.Sequence > 0:
			taken++
		}
	}
	switch {
	case refused == 0 && taken > 0:
		r.wait = 0
	case refused > 0 && (r.wait == 0 || taken > 0):
		r.wait, r.attempt = poll, d.attempt
		r.next = now.Add(r.chance.around(poll))
	}
	return refused, taken
}

// holds reports whether it is too early for the next try.
func (r *refusals) holds(attempt participation.Attempt, now time.Time) bool {
	return r.wait > 0 && attempt == r.attempt && now.Before(r.next)
}

// tries returns how many of n messages may be sent to an attempt now. Fewer than n are a try, which postpones the
// next one.
func (r *refusals) tries(n int, attempt participation.Attempt, now time.Time) int {
	switch {
	case n == 0 || r.wait == 0:
		return n
	case r.holds(attempt, now):
		return 0
	}
	r.attempt, r.next = attempt, now.Add(r.chance.around(r.wait))
	r.wait = min(2*r.wait, mostRefused)
	return min(n, tryMessages)
}
