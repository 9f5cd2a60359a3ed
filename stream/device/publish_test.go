package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Many goroutines publish, some of them events that are none of the task, some the same event.
func TestPublishConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 30, deadline: time.Minute, sealed: true})
		s := newSpy(t, participation.NewMemoryStore())
		bad := []convex.Example{
			{}, {Value: []float64{1}}, {Index: []int32{2, 1}, Value: []float64{1, 1}, Label: 1},
			{Index: []int32{7}, Value: []float64{1}, Label: 1}, {Value: []float64{1, math.NaN(), 0}, Label: 1},
			{Value: []float64{1, 0, 0}, Label: 3}, {Value: []float64{1e308, 1e308, 1e308}, Label: 1},
		}
		w.play(t.Context(), func(ctx context.Context) {
			cl := w.client(w.config(s))
			var group sync.WaitGroup
			for i := range 60 {
				e := example(1)
				if i < len(bad) {
					e = bad[i]
				}
				for range 1 + i%2 {
					group.Go(func() {
						got, err := cl.Publish(ctx, participation.EventKey(fmt.Sprint(i)), e)
						must(t, err)
						if got.State != participation.Counted {
							t.Errorf("event %d: %v, want counted", i, got)
						}
					})
				}
			}
			group.Wait()
			again, err := cl.Publish(ctx, participation.EventKey("3"), example(-1))
			must(t, err)
			if again.State != participation.Counted {
				t.Errorf("the same event again: %v, want its outcome", again)
			}
			late, err := cl.Publish(ctx, participation.EventKey("late"), example(1))
			must(t, err)
			if late.State != participation.Uncounted {
				t.Errorf("after the end: %v, want uncounted", late)
			}
			must(t, cl.Close())
			if _, err := cl.Publish(ctx, participation.EventKey("x"), example(1)); err == nil {
				t.Error("a closed client took an event")
			}
			if _, err := cl.Publish(ctx, participation.Key{}, example(1)); err == nil {
				t.Error("the zero key was taken")
			}
		})
		s.audit(w)
		if len(s.draws) != 60 {
			t.Errorf("%d events were charged, want 60", len(s.draws))
		}
	})
}

// Overflow is uncounted at every Close until the policy's cap; then the event stays at home.
func TestRefundsAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 9, cohort: 10})
		s := newSpy(t, participation.NewMemoryStore())
		c := w.config(s)
		refunds := uint32(2)
		c.Policy.MaxRefunds = &refunds
		cl := w.client(c)
		var got device.Outcome
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, _ = cl.Publish(ctx, participation.EventKey("a"), example(1))
		}()
		for r := stream.Round(1); r <= 5; r++ {
			hash := w.announce(ctx, r)
			w.open(ctx, r, 1, hash)
			time.Sleep(10 * time.Second)
			w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash}) // nothing was opened
			time.Sleep(10 * time.Second)
		}
		<-done
		must(t, cl.Close())
		if got != (device.Outcome{State: participation.Uncounted, Round: 3}) ||
			len(s.draws[participation.EventKey("a")]) != 3 {
			t.Errorf("%v after %d rounds, want uncounted after 3", got, len(s.draws[participation.EventKey("a")]))
		}
		s.audit(w)
	})
}

// Acknowledgements that are lost are asked for again under the same message id; the counts are the same.
func TestRetryKeepsTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var lost atomic.Int32
		lost.Store(5)
		w := newWorld(t, plan{rounds: 1, cohort: 10, broker: memory.Config{Inject: func(op memory.Op, _ string) memory.Fault {
			if op == memory.Publish && lost.Add(-1) >= 0 {
				return memory.LostAck
			}
			return memory.None
		}}})
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		s := newSpy(t, participation.NewMemoryStore())
		cl := w.client(w.config(s))
		var got device.Outcome
		var group sync.WaitGroup
		group.Go(func() { got, _ = cl.Publish(ctx, participation.EventKey("a"), example(1)) })
		time.Sleep(time.Minute)
		if lost.Load() >= 0 || w.reports(1, 1) != 1 {
			t.Errorf("%d answers left to lose, %d reports stored: want none and 1", lost.Load(), w.reports(1, 1))
		}
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1})
		group.Wait()
		must(t, cl.Close())
		if got.State != participation.Counted {
			t.Errorf("%v, want counted", got)
		}
		s.audit(w)
	})
}

// The input of Run may be a pipe that is silent for long: rows are sent as they come, and the end of the task ends Run.
func TestSlowPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 5, deadline: time.Hour})
		quit := make(chan struct{})
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(participation.NewMemoryStore())
			c.Source = ""
			sum, err := w.client(c).Run(ctx, func(yield func(row, error) bool) {
				for r, err := range rows(5, false) {
					time.Sleep(time.Minute)
					if !yield(r, err) {
						return
					}
				}
				<-quit // a terminal that says nothing more
			})
			must(t, err)
			if want := (device.Summary{Events: 5, Units: 5, Counted: 5, Rounds: 1}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
		})
		close(quit)
	})
}

// A reading error ends the reading; what was read before is settled.
func TestReadingError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10, minimum: 2, deadline: time.Minute})
		broken := errors.New("disk on fire")
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(w.config(participation.NewMemoryStore())).Run(ctx, func(yield func(row, error) bool) {
				for r, err := range rows(4, false) {
					if !yield(r, err) {
						return
					}
				}
				yield(row{}, broken)
			})
			if want := (device.Summary{Events: 4, Units: 4, Counted: 4, Rounds: 1}); sum != want || !errors.Is(err, broken) {
				t.Errorf("%+v, %v, want %+v and the error", sum, err, want)
			}
		})
	})
}

// A broker that is full refuses reports; they are sent again when there is room, and counted.
func TestFullBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 50, deadline: time.Hour, broker: memory.Config{MaxReportBytes: 2000}})
		s := newSpy(t, participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(w.config(s)).Run(ctx, rows(100, false))
			must(t, err)
			if want := (device.Summary{Events: 100, Units: 100, Counted: 100, Rounds: 2}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
		})
		s.audit(w)
	})
}

// TestProgressCountsOnce: events that an earlier run left charged, and whose outcome is known before their rows come,
// are counted once.
func TestProgressCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 20, minimum: 5, deadline: time.Minute})
		s := newSpy(t, participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			short, stop := context.WithTimeout(ctx, 30*time.Second)
			defer stop()
			_, err := w.client(w.config(s)).Run(short, rows(15, false))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			c := w.config(s)
			var last, most device.Progress
			c.Progress = func(p device.Progress) {
				last, most.Summary.Counted = p, max(most.Summary.Counted, p.Summary.Counted)
			}
			sum, err := w.client(c).Run(ctx, func(yield func(row, error) bool) {
				time.Sleep(2 * time.Minute) // the round is closed
				rows(20, false)(yield)
			})
			must(t, err)
			if want := (device.Summary{Events: 20, Units: 20, Counted: 20, Rounds: 2}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
			if last.Summary.Events != 20 || most.Summary.Counted != 20 {
				t.Errorf("progress ended with %+v and had %d counted, want 20", last.Summary, most.Summary.Counted)
			}
		})
		s.audit(w)
	})
}

// A run that is stopped leaves charged rows to the next, which learns their outcome without sending them again.
func TestStopAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 20, deadline: time.Hour})
		s := newSpy(t, participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			sum, err := w.client(w.config(s)).Run(short, rows(15, false))
			if want := (device.Summary{Events: 15, Units: 15, Unknown: 15, Open: 15, Rounds: 1}); sum != want ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("stopped: %+v, %v, want %+v", sum, err, want)
			}
			sum, err = w.client(w.config(s)).Run(ctx, rows(20, false))
			must(t, err)
			if want := (device.Summary{Events: 20, Units: 20, Counted: 20, Rounds: 1}); sum != want {
				t.Errorf("resumed: %+v, want %+v", sum, want)
			}
		})
		s.audit(w)
		if n := w.reports(1, 1); n != 20 {
			t.Errorf("%d reports, want 20", n)
		}
	})
}

// Disconnected from its start, a client waits and goes on.
func TestDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Hour})
		w.play(t.Context(), func(ctx context.Context) {
			w.broker.Disconnect()
			time.AfterFunc(time.Minute, w.broker.Connect)
			sum, err := w.client(w.config(participation.NewMemoryStore())).Run(ctx, rows(10, false))
			must(t, err)
			if sum.Counted != 10 {
				t.Errorf("%+v, want 10 counted", sum)
			}
		})
	})
}
