package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// ClockOff is the largest difference from the broker's clock that is not reported.
const ClockOff = 5 * time.Second

// A look returns the newest record on a subject that somebody writes again and again.
type look func(ctx context.Context) (stream.Message, error)

// A Clock measures by how much this machine's clock is ahead of the broker's. The broker stamps each record when it
// stores it: a record that was absent at one look and present at the next was stored between the two. The zero Clock
// has measured nothing yet.
type Clock struct {
	mu    sync.Mutex
	at    time.Time        // when it was compared, by what no change of the clock moves; zero: not yet
	wall  time.Time        // what the clock said then
	ahead time.Duration    // then; the least of what is possible
	clock func() time.Time // the machine's; a test may have another
}

// firstLook is the time between two looks, which doubles up to restLook while nothing comes; after a comparison the
// next one begins restLook later.
const (
	firstLook = 5 * time.Second
	restLook  = time.Minute
)

// LeaseOf returns a look at the lease of a task, which a working stage renews all the time. The learner may not read
// it.
func LeaseOf(from stream.Reader, task stream.Task) look {
	return func(ctx context.Context) (stream.Message, error) { return from.Get(ctx, task.Lease()) }
}

// RoundsOf returns a look at the rounds of a task.
func RoundsOf(from stream.Reader, task stream.Task) look {
	return func(ctx context.Context) (stream.Message, error) { return from.Latest(ctx, task.Rounds()) }
}

// Ahead returns by how much this machine's clock is ahead of the broker's at least; negative: behind; 0: nothing is
// known against it. It is false where they were not compared yet. A clock that was set since shows at once.
func (c *Clock) Ahead() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return 0, false
	}
	return c.ahead + c.read().Sub(c.wall) - time.Since(c.at), true
}

func (c *Clock) read() time.Time {
	if c.clock == nil {
		return time.Now().Round(0)
	}
	return c.clock()
}

// Watch compares the clocks until ctx is done, and logs one that is off.
func (c *Clock) Watch(ctx context.Context, look look, log *slog.Logger) {
	var (
		last stream.Message
		sent time.Time // of the look that found it; zero: none
		wait = firstLook
		off  bool
	)
	for sleep(ctx, wait) {
		before := c.read()
		m, err := look(ctx)
		after := c.read()
		switch {
		case err != nil:
			sent, wait = time.Time{}, min(2*wait, restLook)
		case sent.IsZero():
			last, sent, wait = m, before, firstLook
		case m.Sequence > last.Sequence && !m.Time.IsZero():
			c.compared(after, sent.Sub(m.Time), after.Sub(m.Time))
			sent, wait = time.Time{}, restLook
		default:
			last, sent, wait = m, before, min(2*wait, restLook)
		}
		if ahead, _ := c.Ahead(); (ahead.Abs() > ClockOff) != off {
			off = !off
			c.tell(log, ahead, off)
		}
	}
}

// sleep waits, and returns false where ctx is done before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// compared records the least and the most by which the clock was ahead when it showed wall, just now.
func (c *Clock) compared(wall time.Time, least, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.wall, c.ahead = time.Now(), wall, max(least, min(most, 0))
}

// clockRunbook is the advice to operators on how to correct a clock.
const clockRunbook = "set both by NTP: docs/how-to/runbook.md, clocks"

func (c *Clock) tell(log *slog.Logger, ahead time.Duration, off bool) {
	if off {
		log.Warn("this machine's clock and the broker's differ: deadlines, certificates and ledgers go by them; "+
			clockRunbook, "ahead", ahead.Round(time.Second))
		return
	}
	log.Info("this machine's clock agrees with the broker's again")
}
