package device

import (
	"context"
	"errors"
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

// refusals holds what is known of a broker that does not take reports, mostly because a stream is full. As long as
// its newest answers are refusals, nobody else is charged for a report that nobody takes, and those who are
// charged wait: a few of their messages are tried, or those of one event that joins if nobody waits, at growing
// intervals, and at once in another attempt, whose reports have the queue to themselves. All this depends on the
// broker alone.
type refusals struct {
	wait    time.Duration // to the next try; 0: the newest answers are none
	next    time.Time
	attempt participation.Attempt // that was refused
	count   uint64                // of messages that were refused
	trouble stream.Trouble
}

// told takes the answers to one delivery, and returns how many of its messages were refused and how many stored.
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
		r.next = now.Add(jittered(poll))
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
	r.attempt, r.next = attempt, now.Add(jittered(r.wait))
	r.wait = min(2*r.wait, mostRefused)
	return min(n, tryMessages)
}

// jittered returns a random time whose mean is d, so that devices that were refused together do not come back together.
func jittered(d time.Duration) time.Duration {
	return d/2 + time.Duration(float64(d)*float64(random32())/(1<<32))
}

// note records and logs what the answer to a delivery shows of the broker: it refuses reports, does not answer, or
// takes them again, which only a stored report shows.
func (l *loop) note(d delivery, now time.Time) {
	refused, taken := l.refusals.told(d, l.Poll, now)
	l.refusals.count += uint64(refused)
	switch cause := d.cause(); {
	case errors.Is(d.err, context.Canceled):
	case refused > 0:
		l.suffer(now, "the broker refuses reports: "+cause)
		if l.refusals.trouble.Tell(now, nil) {
			l.Logger.Warn("the broker refuses reports. Trying again; nobody else joins until it takes one",
				"round", d.round.number, "messages", refused, "taken", taken, "cause", cause)
		}
	case d.err != nil:
		l.suffer(now, "reports cannot be sent: "+d.err.Error())
		if l.publishing.Tell(now, d.err) {
			l.Logger.Warn("publish failed; trying again", "messages", len(d.bundles), "err", d.err)
		}
	case taken < len(d.acks):
		l.suffer(now, "the broker does not answer reports: "+cause)
		if l.publishing.Tell(now, nil) {
			l.Logger.Warn("the broker does not answer reports; trying again", "round", d.round.number, "messages",
				len(d.acks)-taken, "cause", cause)
		}
	case taken > 0:
		l.trouble, l.troubled = "", time.Time{}
		if l.publishing.Over() {
			l.Logger.Info("publishing works again")
		}
		if l.refusals.trouble.Over() {
			l.Logger.Info("the broker takes reports again")
		}
	}
}

// suffer notes why reports are not taken, and since when.
func (l *loop) suffer(now time.Time, trouble string) {
	if l.trouble = trouble; l.troubled.IsZero() {
		l.troubled = now
	}
}

// cause returns the adapter's reason why a message of a delivery was refused or, if none was, why one was not
// answered.
func (d *delivery) cause() string {
	cause := "no reason is given"
	for _, a := range d.acks {
		if a.Cause == "" {
			continue
		}
		if cause = a.Cause; a.Status == stream.Refused {
			break
		}
	}
	return cause
}

// unrefused returns how many of n events may join now. While the broker refuses reports it is the events of one
// message, and only if nobody is charged whose message could be tried instead.
func (l *loop) unrefused(n int) int {
	if l.refusals.wait == 0 {
		return n
	}
	if l.sending > 0 || len(l.current.owed) > 0 {
		return 0
	}
	return min(n, l.refusals.tries(1, l.current.attempt, time.Now())*l.Bundle)
}
