package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// stopping runs a stage with one round open and some users in it, asks it to stop, and returns when Run returned since
// then.
func stopping(t *testing.T, c Config, w *world, first, later []uint64, after time.Duration) (took time.Duration,
	dropped, opened int) {
	t.Helper()
	c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
	c.Observer.Opened = func(stream.Round, stream.Attempt) { opened++ }
	s := w.new(c)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	in := w.invited(t.Context(), 1, 0)
	w.answer(t.Context(), in, first)
	time.Sleep(5 * time.Second)
	begun := time.Now()
	stop()
	if later != nil {
		time.Sleep(after)
		w.answer(t.Context(), in, later)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	return time.Since(begun), dropped, opened
}

// TestDrain: a stage that is asked to stop ends the round that is open, if it may and the users come, and opens no
// other. Without Drain, or where they do not come in time, the attempt is dropped; one that has nothing open ends at
// once.
func TestDrain(t *testing.T) {
	for _, test := range []struct {
		what           string
		drain          time.Duration
		later          int // users, after ten seconds
		released       bool
		least, atMost  time.Duration
		drops, attempt int
	}{
		{"at once", 0, 0, false, 0, time.Second, 1, 1},
		{"the rest comes", time.Minute, 6, true, 10 * time.Second, 20 * time.Second, 0, 1},
		{"nobody comes", time.Minute, 0, false, time.Minute, time.Minute + 5*time.Second, 1, 1},
		{"too few come", time.Minute, 5, false, time.Minute, time.Minute + 5*time.Second, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 2, cohort: 10})
			w.announce(t.Context())
			c := w.config()
			c.Drain = test.drain
			users := w.users(1)
			var later []uint64
			if test.later > 0 {
				later = users[4 : 4+test.later]
			}
			learning, over := context.WithCancel(t.Context())
			var learner sync.WaitGroup
			learner.Go(func() { // there is more to do
				if w.get(learning, w.name.Batch(1)) != nil {
					w.put(learning, w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
				}
			})
			took, dropped, opened := stopping(t, c, w, users[:4], later, 10*time.Second)
			if took < test.least || took > test.atMost || dropped != test.drops || opened != test.attempt {
				t.Errorf("%s: took %v, %d attempts dropped, %d opened", test.what, took, dropped, opened)
			}
			if b, _ := w.batch(1); (b != nil) != test.released || b != nil && (b.Void || b.Users != 10 || b.Attempt != 1) {
				t.Errorf("%s: batch %v", test.what, b)
			}
			// The next device has round 1, or round 2 if that is done.
			next, stop := w.start(w.config())
			time.Sleep(30 * time.Second)
			want := map[bool]string{true: "round 2, attempt 1", false: "round 1, attempt 2"}[test.released]
			if at := next.Status(); fmt.Sprintf("round %d, attempt %d", at.Round, at.Attempt) != want {
				t.Errorf("%s: the next stage is at %+v, want %s", test.what, at, want)
			}
			over()
			learner.Wait()
			if err := stop(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// TestDrainStandingBy: a stage without the lease has nothing to end.
func TestDrainStandingBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		w.invited(t.Context(), 1, 0)
		c := w.config()
		c.Drain = time.Hour
		_, stopSecond := w.start(c)
		time.Sleep(time.Minute)
		begun := time.Now()
		if err := stopSecond(); !errors.Is(err, context.Canceled) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
