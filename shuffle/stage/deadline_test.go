package stage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// start runs a stage in the background and returns it with a function that stops it and gives Run's error.
func (w *world) start(c Config) (*Stage, func() error) {
	s := w.new(c)
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, func() error { stop(); return <-done }
}

// TestDeadlineTopsUp: past the deadline the minimum is enough, and the missing users' noise is put in.
func TestDeadlineTopsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10, minimum: 6, deadline: time.Minute})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:7])
		time.Sleep(50 * time.Second)
		if b, _ := w.batch(1); b != nil {
			t.Fatal("released before the deadline")
		}
		time.Sleep(15 * time.Second)
		b, _ := w.batch(1)
		if b == nil || b.Void || b.Users != 7 || b.NoiseTrials != 10 {
			t.Fatalf("batch %v: want 7 users and the trials of 10", b)
		}
		// Three trials of the top-up are in each total: one-hot users plus a count from 0 to 3.
		for u, total := range b.Totals {
			own := uint64(0)
			if u < 7 {
				own = 1
			}
			if total < own || total > own+3 {
				t.Errorf("total of %d is outside [%d, %d]", u, own, own+3)
			}
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestARoundHasItsOwnDeadline: the stage collects for as long as the Round says, where that is within the plan's
// bounds.
func TestARoundHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10, minimum: 6, deadline: time.Minute, stale: time.Hour})
		w.put(t.Context(), w.name.Task(), w.sign(w.learner, w.task))
		round := w.round(1, 1)
		round.DeadlineMs = uint64((10 * time.Minute).Milliseconds())
		w.put(t.Context(), w.name.Round(1), w.sign(w.learner, round))
		c := w.config()
		_, stop := w.start(c)
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:7])
		time.Sleep(9 * time.Minute)
		if b, _ := w.batch(1); b != nil {
			t.Fatal("released before the round's deadline")
		}
		time.Sleep(time.Minute + 2*c.Poll) // the stage looks once a poll, jittered by half
		if b, _ := w.batch(1); b == nil || b.Void || b.Users != 7 {
			t.Errorf("batch %v: want 7 users", b)
		}
		_ = stop()
	})
}

// slow is a stage's work: opening a report takes it a second.
type slow struct{ stream.ReportReader }

func (r slow) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	reports, err := r.ReportReader.Fetch(ctx, 1, wait)
	if len(reports) > 0 {
		time.Sleep(time.Second)
	}
	return reports, err
}

// TestReportsThatWaitAtTheDeadlineAreCounted: who has sent a report has paid for it, so a round whose minimum is there
// when its deadline is over does not close as long as reports lie at the broker, or come one after the other.
func TestReportsThatWaitAtTheDeadlineAreCounted(t *testing.T) {
	for _, atTheBroker := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 100, minimum: 55, deadline: time.Minute})
			w.announce(t.Context())
			c := w.config()
			if atTheBroker {
				c.Reports = slow{c.Reports}
			}
			_, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			users := w.users(1)[:97] // three never come
			if atTheBroker {
				w.answer(t.Context(), in, users)
			} else {
				for _, u := range users {
					w.answer(t.Context(), in, []uint64{u})
					time.Sleep(time.Second)
				}
			}
			time.Sleep(2 * time.Minute)
			if b, _ := w.batch(1); b == nil || b.Void || b.Users != 97 {
				t.Errorf("at the broker: %t: batch of %d users, want all 97 who sent", atTheBroker, b.GetUsers())
			}
			_ = stop()
		})
	}
}

// TestAStageThatSleptOverItsDeadlineLooksFirst: reports that came while its machine slept are counted before the round
// closes.
func TestAStageThatSleptOverItsDeadlineLooksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 100, minimum: 50, deadline: time.Minute})
		w.announce(t.Context())
		c := w.config()
		machine := &suspended{Records: c.Records, ReportReader: c.Reports}
		c.Records, c.Reports = machine, machine
		c.LeaseTTL = 10 * time.Minute
		_, stop := w.start(c)
		in := w.invited(t.Context(), 1, 0)
		users := w.users(1)
		w.answer(t.Context(), in, users[:60])
		time.Sleep(30 * time.Second)
		machine.sleep()
		w.answer(t.Context(), in, users[60:80])
		time.Sleep(2 * time.Minute)
		machine.wake()
		time.Sleep(2 * time.Minute)
		if b, _ := w.batch(1); b == nil || b.Void || b.Users != 80 {
			t.Errorf("batch of %d users, want all 80 who sent", b.GetUsers())
		}
		_ = stop()
	})
}

// TestNobodyHoldsARoundOpen: reports that drip past the deadline keep a round open for as long as the deadline again,
// and no longer.
func TestNobodyHoldsARoundOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 200, minimum: 10, deadline: time.Minute})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		begun := time.Now()
		for _, u := range w.users(1) {
			if b, _ := w.batch(1); b != nil {
				break
			}
			w.answer(t.Context(), in, []uint64{u})
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took < 115*time.Second || took > 125*time.Second {
			t.Errorf("the round took %v, want two deadlines of a minute", took)
		}
		_ = stop()
	})
}

// TestUnderTheMinimumNothingIsReleased: the round stays open past its deadline, says what it waits for, and closes with
// the user who completes the minimum.
func TestUnderTheMinimumNothingIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10, minimum: 6, deadline: time.Minute})
		w.announce(t.Context())
		var log bytes.Buffer
		c := w.config()
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s, stop := w.start(c)
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:5])
		begun := time.Now()
		time.Sleep(30 * time.Minute)
		if b, _ := w.batch(1); b != nil {
			t.Fatal("released under the minimum")
		}
		if got, want := told(s.Status()), "collecting round 1, attempt 1: 5 of 10"; got != want {
			t.Errorf("status %q, want %q", got, want)
		}
		if st := s.Status(); st.Minimum != 6 || !st.Lease || time.Since(st.Deadline) < 28*time.Minute {
			t.Errorf("status %+v", st)
		}
		w.answer(t.Context(), in, w.users(1)[5:6])
		time.Sleep(5 * time.Second)
		if b, _ := w.batch(1); b == nil || b.Users != 6 || b.NoiseTrials != 10 {
			t.Errorf("batch %v", b)
		}
		_ = stop()
		said := regexp.MustCompile(
			`time=(\S+) .*waits for its minimum" round=1 attempt=1 reports=5 minimum=6 cohort=10`).FindAllStringSubmatch(
			log.String(), -1)
		if len(said) != 1 {
			t.Fatalf("said %d times that users are missing, want once:\n%s", len(said), &log)
		}
		if at, err := time.Parse(time.RFC3339, said[0][1]); err != nil || at.Sub(begun) < 50*time.Second ||
			at.Sub(begun) > 70*time.Second {
			t.Errorf("said at %s (%v) that users are missing, want at the deadline, a minute after %v", said[0][1], err, begun)
		}
	})
}

// acks records the sequences that a stage acknowledged, which are those that it examined.
type acks struct {
	stream.ReportReader
	highest uint64
	count   int
}

func (r *acks) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	ds, err := r.ReportReader.Fetch(ctx, max, wait)
	for i := range ds {
		ack, sequence := ds[i].Ack, ds[i].Sequence
		ds[i].Ack = func() error {
			r.highest, r.count = higher(r.highest, sequence), r.count+1
			return ack()
		}
	}
	return ds, err
}

// higher does the same as max, whose name is a parameter of Fetch.
func higher(a, b uint64) uint64 { return max(a, b) }

// TestNothingIsOpenedAfterTheCutoff: of twice as many reports as a cohort takes, in random order, exactly a cohort is
// opened, and the cutoff is the highest sequence among them.
func TestNothingIsOpenedAfterTheCutoff(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 20, suite: wire.Suite_SUITE_X25519, broker: memory.Config{Shuffle: true, Seed: seed}})
			w.announce(t.Context())
			opened := 0
			c := w.config()
			read := &acks{ReportReader: c.Reports}
			c.Reports = read
			c.Prefetch = 1 + rand.New(rand.NewPCG(seed, 0)).IntN(40)
			c.Observer.Report = func(Reason) { opened++ }
			_, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			time.Sleep(time.Second)
			w.answer(t.Context(), in, make([]uint64, 40)) // all in coordinate 0: only numbers matter here
			time.Sleep(10 * time.Second)
			b, _ := w.batch(1)
			if b == nil || b.Users != 20 || b.Totals[0] != 20 || opened != 20 || read.count != 20 || b.Cutoff != read.highest {
				t.Errorf("%d opened, %d acknowledged up to %d: batch %v", opened, read.count, read.highest, b)
			}
			_ = stop()
		})
	}
}
