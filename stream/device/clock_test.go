package device_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A timeless broker may not reply to reads of the lease, and the adapter gives up before its caller if it has less
// patience.
type timeless struct {
	stream.Transport
	lease    string
	patience time.Duration // 0: the caller's
	silent   atomic.Bool
}

func (b *timeless) Get(ctx context.Context, subject string) (stream.Message, error) {
	if subject == b.lease && b.silent.Load() {
		if b.patience > 0 {
			time.Sleep(b.patience)
			return stream.Message{}, errors.New("no answer")
		}
		<-ctx.Done()
		return stream.Message{}, ctx.Err()
	}
	return b.Transport.Get(ctx, subject)
}

// TestOneJumpOfTheClock: a machine's clock goes ahead by years and is set right, before the first event or between
// two, in a process that runs or in one that starts. Nothing that was paid is forgotten meanwhile, nobody is charged,
// the ledger's clock does not follow, and as soon as the clock is right the event is taken, and its charge leaves the
// period in its time.
func TestOneJumpOfTheClock(t *testing.T) {
	const period, jump = 30 * 24 * time.Hour, 70 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		fresh, silent bool
		patience      time.Duration
	}{
		"in a process that runs": {}, "in one that starts": {fresh: true},
		"in a process that runs, and the broker does not tell the time": {silent: true},
		"in one that starts, and the broker does not tell":              {true, true, 0},
		"in a process that runs, and the adapter gives up first":        {false, true, time.Second},
		"in one that starts, and the adapter does":                      {true, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 50, cohort: 1})
				l := memory.NewLedger()
				var shown atomic.Pointer[device.Progress]
				shown.Store(&device.Progress{})
				var by atomic.Int64
				timeless := &timeless{Transport: w.broker, lease: w.name.Lease(), patience: test.patience}
				var log logbook
				begin := func() *device.Device {
					c := w.config(participation.NewMemoryStore())
					c.Logger = log.logger()
					c.Transport = timeless
					c.Ledger, c.UserKeys = l, true
					c.Progress = func(p device.Progress) { shown.Store(&p) }
					c.Policy = consent.Policy{AllowPlaintext: true, MaxTotalEpsilon: 1.5 * w.cost(), Period: period}
					cl := w.client(c)
					device.SetClock(cl, func() time.Time { return time.Now().Round(0).Add(time.Duration(by.Load())) })
					return cl
				}
				spent := func() float64 {
					s, err := ledger.ReadStatement(l, time.Now(), period)
					must(t, err)
					return s.Epsilon
				}
				w.play(t.Context(), func(ctx context.Context) {
					time.Sleep(time.Minute)
					cl := begin()
					if !test.fresh {
						o, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
						if err != nil || o.State != participation.Counted {
							t.Fatalf("%+v, %v", o, err)
						}
					}
					paid := spent()
					by.Store(int64(jump))
					timeless.silent.Store(test.silent)
					outcome := make(chan device.Outcome, 1)
					go func() {
						o, _ := cl.Publish(ctx, participation.EventKey("b"), example(1))
						outcome <- o
					}()
					time.Sleep(10 * time.Minute)
					if len(outcome) > 0 {
						t.Fatalf("%+v by a clock that is ahead", <-outcome)
					}
					if p := shown.Load(); (p.Ahead > jump/2 && !p.AheadSince.IsZero()) == test.silent {
						t.Errorf("progress says that the clock is %v ahead since %v", p.Ahead, p.AheadSince)
					}
					if at, err := l.Clock(); err != nil || time.Until(at) > time.Hour {
						t.Errorf("the ledger's clock says %v, %v", at, err)
					}
					if now := spent(); now != paid {
						t.Errorf("spent %v, and %v before the jump", now, paid)
					}
					if n := log.count("cannot hold this machine's clock"); (n > 0) != test.silent || n > 21 { // once in 30 s
						t.Errorf("the log tells %d times that the broker does not answer", n)
					}
					by.Store(0)
					timeless.silent.Store(false)
					time.Sleep(10 * time.Minute)
					select {
					case o := <-outcome:
						if o.State != participation.Counted {
							t.Errorf("%+v after the clock was set right", o)
						}
					default:
						t.Error("still waiting after the clock was set right")
					}
					if p := shown.Load(); p.Ahead != 0 || !p.AheadSince.IsZero() {
						t.Errorf("progress says that the clock is %v ahead since %v after it was set", p.Ahead, p.AheadSince)
					}
					if n := log.count("answers for its clock again"); (n == 1) != test.silent {
						t.Errorf("the log tells %d times that the broker answers again", n)
					}
					must(t, cl.Close())
				})
				time.Sleep(period + time.Hour) // by which the ledger may have been ahead
				if now := spent(); now != 0 {
					t.Errorf("spent %v when the period is over", now)
				}
			})
		})
	}
}

// TestClocksThatAreRight: without a jump ahead a device does not wait: with a clock some minutes ahead or behind, on a
// machine that slept, and with a broker that shows no time.
func TestClocksThatAreRight(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 50 * time.Minute, "behind": -10 * time.Hour, "equal": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 4, cohort: 1})
				c := w.config(participation.NewMemoryStore())
				c.Ledger = memory.NewLedger()
				cl := w.client(c)
				began := time.Now()
				device.SetClock(cl, func() time.Time {
					if time.Since(began) > time.Hour {
						return time.Now().Round(0).Add(by) // as a machine whose clock went on while it slept
					}
					return time.Now().Round(0)
				})
				w.play(t.Context(), func(ctx context.Context) {
					for i, key := range []string{"a", "b"} {
						soon, stop := context.WithTimeout(ctx, 5*time.Minute)
						if o, err := cl.Publish(soon, participation.EventKey(key), example(1)); err != nil ||
							o.State != participation.Counted {
							t.Errorf("event %d: %+v, %v", i, o, err)
						}
						stop()
						time.Sleep(2 * time.Hour)
					}
				})
				must(t, cl.Close())
			})
		})
	}
}
