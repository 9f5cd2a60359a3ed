package device

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A device's clock may be ahead of the broker's by maxAhead. One that went on by a jump, of more than clockJump, is
// compared again before it is believed, at most once in clockEvery.
const (
	maxAhead   = time.Hour
	clockJump  = time.Minute
	clockEvery = time.Minute
)

// A clock keeps the time that the ledger is given. A charge leaves a period by this time, and a ledger never forgets
// the latest time it was given: a machine whose clock is ahead by years for a moment would forget what its users paid,
// and then hold their payments against them for years. The clock is therefore compared with the broker's, by the
// timestamp of the lease, which a working stage keeps renewing. If it is further ahead than allowed, nobody is charged,
// and the ledger is otherwise given the broker's time. A broker or a stage that shows old times keeps devices from
// taking part, just as silence does; one that shows late times changes nothing, for the device's own clock is the later
// bound. If there is no lease, or the device may not read it, its own clock is believed.
type clock struct {
	read   func() time.Time // the machine's; a test may have another
	steady func() time.Time // what no change of the machine's clock moves

	wall, since time.Time     // when the clock was last right, by the clock itself and by a steady one; zero: not yet
	limit       time.Time     // the latest time that is believed, if the clock was ahead
	next        time.Time     // of another comparison, if the last one found the clock wrong
	by          time.Duration // by how much the clock was ahead when that was first seen; 0: it is not
	found       time.Time     // when; zero: it is not
	unknown     bool          // the broker did not answer when it was to be compared
	silence     stream.Trouble
}

// now returns the time that the ledger is given.
func (c *clock) now() time.Time {
	t := c.read()
	if !c.wall.IsZero() {
		if right := c.wall.Add(c.steady().Sub(c.since)); t.Sub(right) > clockJump {
			return right // it jumped since it was compared: the next comparison decides
		}
	}
	if c.limit.IsZero() || t.Before(c.limit) {
		return t
	}
	return c.limit
}

// foundAhead returns by how much the clock was found ahead and when, where it is so still.
func (c *clock) foundAhead() (by time.Duration, since time.Time) {
	if !c.ahead() {
		return 0, time.Time{}
	}
	return c.by, c.found
}

// ahead reports whether the clock was found ahead and still is.
func (c *clock) ahead() bool { return !c.limit.IsZero() && !c.read().Before(c.limit) }

// holds reports whether nobody may be charged now.
func (c *clock) holds() bool { return c.unknown || c.ahead() }

// doubtful reports whether a comparison is due: none has found the clock right yet, or the clock has since moved
// differently from elapsed time.
func (c *clock) doubtful() bool {
	if c.unknown || c.wall.IsZero() {
		return !c.steady().Before(c.next)
	}
	moved := c.read().Sub(c.wall) - c.steady().Sub(c.since)
	return moved > clockJump || moved < -clockJump
}

// compared takes a lower bound of the broker's time; the zero time if none is known.
func (c *clock) compared(told time.Time) {
	c.next = c.steady().Add(clockEvery)
	c.wall, c.since, c.limit, c.unknown = time.Time{}, time.Time{}, time.Time{}, false
	switch t := c.read(); {
	case told.IsZero():
	case t.Sub(told) > maxAhead:
		c.limit = told.Add(maxAhead)
		if c.found.IsZero() {
			c.by, c.found = t.Sub(told), c.steady()
		}
		return
	default:
		c.wall, c.since = t, c.steady()
	}
	c.by, c.found = 0, time.Time{}
}

// compareClock holds the clock against the broker's, where that is due and a ledger is kept.
func (c *core) compareClock() {
	k := c.clock
	if c.settings.Ledger == nil || !k.doubtful() {
		return
	}
	got := c.do(effect{call: readLease})
	k.unknown = got.err != nil && !errors.Is(got.err, stream.ErrNotFound) && !errors.Is(got.err, stream.ErrRefused)
	if k.unknown {
		now := c.now()
		k.next = now.Add(c.settings.Poll)
		if !got.ended {
			c.log.Log(context.Background(), k.silence.Level(now, got.err),
				"cannot hold this machine's clock against the broker's: nobody is charged until the broker answers",
				"subject", c.settings.Task.Lease(), "err", got.err)
		}
		return
	}
	if k.silence.Over() {
		c.log.Info("the broker answers for its clock again")
	}
	was, told := !k.found.IsZero(), got.time
	if r := c.rounds.known.newest; r != nil && r.open != nil && !told.IsZero() {
		if opened := time.UnixMilli(r.open.StartedUnixMs); opened.After(told) {
			told = opened
		}
	}
	k.compared(told)
	switch is := k.ahead(); {
	case is && !was:
		c.do(effect{call: tellProgress})
		c.log.Warn(
			"this machine's clock is ahead of the broker's, or no stage works: nobody is charged until one of them is mended (docs/how-to/runbook.md, clocks)",
			"clock", k.read().UTC(), "broker", told.UTC())
	case was && !is:
		c.do(effect{call: tellProgress})
		c.log.Info("this machine's clock agrees with the broker's again")
	}
}
