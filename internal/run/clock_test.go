package run

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestClockOff: a clock that is ahead or behind by more than the time between two looks is known by what it is off at
// least, one that is right is never blamed, neither while nobody renews the lease nor while the broker does not answer.
func TestClockOff(t *testing.T) {
	for name, test := range map[string]struct {
		by       time.Duration // of this machine
		renewed  time.Duration // how often the record is written; 0: never
		from, to time.Duration
		known    bool
	}{
		"right":            {0, 4 * time.Second, 0, 0, true},
		"some seconds off": {3 * time.Second, 4 * time.Second, 0, 3 * time.Second, true},
		"a day ahead": {24 * time.Hour, 4 * time.Second, 24*time.Hour - firstLook - 20*time.Millisecond,
			24 * time.Hour, true},
		"a day behind": {-24 * time.Hour, 4 * time.Second, -24 * time.Hour, -24*time.Hour + firstLook +
			20*time.Millisecond, true},
		"no stage works":            {0, 0, 0, 0, false},
		"ahead, and no stage works": {time.Hour, 0, 0, 0, false},
		"rounds that take an hour":  {0, time.Hour, 0, 0, true},
		"behind, with hourly rounds": {-24 * time.Hour, time.Hour, -24 * time.Hour, -24*time.Hour + restLook + time.Second,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var log bytes.Buffer
				c := &Clock{clock: func() time.Time { return time.Now().Round(0).Add(test.by) }}
				ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour)
				defer stop()
				looks := 0
				c.Watch(ctx, func(context.Context) (stream.Message, error) {
					if looks++; looks%7 == 0 {
						return stream.Message{}, stream.ErrNotFound
					}
					m := stream.Message{Sequence: 1, Time: begun.Add(-24 * time.Hour)}
					if test.renewed > 0 {
						n := time.Since(begun) / test.renewed
						m = stream.Message{Sequence: uint64(n) + 1, Time: begun.Add(n * test.renewed).Round(0)}
					}
					time.Sleep(10 * time.Millisecond)
					return m, nil
				}, slog.New(slog.NewTextHandler(&log, nil)))
				ahead, known := c.Ahead()
				if known != test.known || ahead < test.from || ahead > test.to {
					t.Errorf("ahead by %v, %t; want %v to %v", ahead, known, test.from, test.to)
				}
				if n := strings.Count(log.String(), "clock and the broker's differ"); (n == 1) != (ahead.Abs() > ClockOff) ||
					n > 1 {
					t.Errorf("told %d times:\n%s", n, log.String())
				}
				if looks > 400 {
					t.Errorf("%d looks in three hours", looks)
				}
			})
		})
	}
}

// TestClockThatIsSet: after a comparison a clock that is set shows before the next one.
func TestClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := time.Duration(0)
		c := &Clock{clock: func() time.Time { return time.Now().Round(0).Add(by) }}
		c.compared(c.read(), -time.Second, time.Second)
		for _, by = range []time.Duration{0, time.Hour, -24 * time.Hour, 0} {
			time.Sleep(time.Hour)
			if ahead, known := c.Ahead(); ahead != by || !known {
				t.Errorf("set by %v: %v, %t", by, ahead, known)
			}
		}
	})
}
