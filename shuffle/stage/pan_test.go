package stage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// quiet is a generator under which a draw of few fair trials is zero, so that totals with a floor are exact.
type quiet struct{}

func (quiet) Uint64() uint64 { return math.MaxUint64 }

// exactly makes the noise of a stage zero.
func exactly(t *testing.T, c Config) Config {
	t.Helper()
	law, err := randomizer.NewBinomial(100, randomizer.Fair)
	if err != nil {
		t.Fatal(err)
	}
	if n := law.Sample(quiet{}); n != 0 {
		t.Fatalf("a quiet generator draws a floor of %d", n)
	}
	c.Entropy = func() rand.Source { return quiet{} }
	return c
}

// TestPanAttemptDies: somebody may have looked at an attempt that died, so its users do not answer the next one. The
// round waits for others, says so, releases nothing meanwhile, and then holds the others alone.
func TestPanAttemptDies(t *testing.T) {
	for _, trust := range panTrusts {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 6, spares: 1, trust: trust, suite: wire.Suite_SUITE_X25519})
			w.announce(t.Context())
			first, kill := w.start(exactly(t, w.config()))
			w.answer(t.Context(), w.invited(t.Context(), 1, 0), []uint64{0, 1, 2, 3})
			time.Sleep(5 * time.Second)
			if got, want := told(first.Status()), "collecting round 1, attempt 1: 4 of 6"; got != want {
				t.Errorf("status %q, want %q", got, want)
			}
			if err := kill(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}

			var log bytes.Buffer
			var opened []stream.Attempt
			c := exactly(t, w.config())
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Observer.Opened = func(_ stream.Round, attempt stream.Attempt) { opened = append(opened, attempt) }
			second, stop := w.start(c)
			in := w.invited(t.Context(), 1, 1)
			w.answer(t.Context(), in, []uint64{4, 5})
			time.Sleep(10 * time.Minute)
			if got, want := told(second.Status()), "collecting round 1, attempt 2: 2 of 6"; got != want {
				t.Errorf("status %q, want %q", got, want)
			}
			if b, _ := w.batch(1); b != nil {
				t.Fatal("released without a cohort")
			}
			w.answer(t.Context(), in, []uint64{6, 7, 8, 9})
			time.Sleep(5 * time.Second)
			b, _ := w.batch(1)
			noise := 200 + 6*uint64(w.params.Trials)
			if b == nil || b.Attempt != 2 || b.Users != 6 || b.NoiseTrials != noise {
				t.Fatalf("batch %v: want 6 users of attempt 2 and %d trials", b, noise)
			}
			if want := []uint64{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0}; !slices.Equal(b.Totals, want) {
				t.Errorf("totals %v, want %v", b.Totals, want)
			}
			_ = stop()
			if !slices.Equal(opened, []stream.Attempt{2}) || !strings.Contains(log.String(), "its users drop out") {
				t.Errorf("opened %v; the log says\n%s", opened, log.String())
			}
		})
	}
}

// TestPanWithoutSpares: where nobody is left to take the places of those who dropped out, the round stays open and
// says what it waits for, until the learner ends the task.
func TestPanWithoutSpares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 6, trust: wire.Trust_TRUST_PAN})
		w.announce(t.Context())
		_, kill := w.start(w.config())
		w.answer(t.Context(), w.invited(t.Context(), 1, 0), []uint64{0})
		time.Sleep(5 * time.Second)
		_ = kill()
		c := w.config()
		dropped := 0
		c.Observer.Dropped = func(_ stream.Round, attempt stream.Attempt) { dropped += int(attempt) }
		s := w.new(c)
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		w.answer(t.Context(), w.invited(t.Context(), 1, 1), []uint64{1, 2, 3, 4, 5})
		time.Sleep(30 * time.Minute)
		if st := s.Status(); st.Attempt != 2 || st.Users != 5 || st.Cohort != 6 {
			t.Errorf("status %v", st)
		}
		w.end(t.Context(), 0)
		if err := <-done; err != nil || dropped != 2 {
			t.Errorf("Run: %v, dropped attempt %d", err, dropped)
		}
		if b, _ := w.batch(1); b != nil {
			t.Error("a round under its minimum was released")
		}
	})
}

// TestPanDeadlineTopsUp checks that a missing user's noise is added under the trusts in which users send some, and
// both floors in any case.
func TestPanDeadlineTopsUp(t *testing.T) {
	for _, trust := range panTrusts {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 10, minimum: 6, deadline: time.Minute, trust: trust})
			w.announce(t.Context())
			_, stop := w.start(w.config())
			w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1)[:7])
			time.Sleep(65 * time.Second)
			b, _ := w.batch(1)
			noise := 200 + 10*uint64(w.params.Trials)
			if b == nil || b.Void || b.Users != 7 || b.NoiseTrials != noise {
				t.Fatalf("%v: batch %v: want 7 users and %d trials", trust, b, noise)
			}
			// Both floors of 100 trials, and the top-up of 3 where users have noise: below 25 of 200 fair trials with a
			// probability under 1e-26, in each of 10 totals.
			for u, total := range b.Totals {
				own := uint64(0)
				if u < 7 {
					own = 1
				}
				if total < own+25 || total > own+noise {
					t.Errorf("%v: total of %d is %d", trust, u, total)
				}
			}
			_ = stop()
		})
	}
}
