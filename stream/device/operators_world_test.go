package device_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestTwoOperatorsCount: the rows of a client are counted by two operators, in messages of one user and of several, from
// the broker and over a relay, and each is drawn once.
func TestTwoOperatorsCount(t *testing.T) {
	for _, bundle := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 20, deadline: time.Minute, trust: accounting.Split, bundle: uint32(bundle)})
			s := newSpy(t, participation.NewMemoryStore())
			c := w.dear(s)
			if c.Bundle = bundle; bundle > 1 {
				c.Transport = w.relayed(newCache(w.relay()))
			}
			w.play(t.Context(), func(ctx context.Context) {
				sum, err := w.client(c).Run(ctx, rows(60, true))
				must(t, err)
				checkSum(t, sum)
				if sum.Events != 60 || sum.Counted != 60 || sum.Invalid != 12 {
					t.Errorf("%+v, want 60 events counted", sum)
				}
				for r := stream.Round(1); r <= 3; r++ {
					if b := w.batch(ctx, r); b == nil || b.Users != 20 || b.Attempt != 1 {
						t.Errorf("round %d: %+v, want 20 users in the first attempt", r, b)
					}
				}
			})
			s.audit(w)
		})
	}
}

// TestTwoOperatorsAskTheSameUsers: the users of an interactive phase take part in each of its rounds with two
// operators, with a draw of their own for each; users of the phases around it take part in one round.
func TestTwoOperatorsAskTheSameUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 20, deadline: time.Minute, trust: accounting.Split})
		w.replan(once(10, 2), asked(20, 4, 0), once(10, 1))
		s := newSpy(t, participation.NewMemoryStore())
		c := w.dear(s)
		c.Policy.MaxEpsilon = accounting.MaxEpsilon
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(c).Run(ctx, rows(50, true))
			must(t, err)
			if sum.Events != 50 || sum.Counted != 50 {
				t.Errorf("%+v, want 50 events counted", sum)
			}
			if got := s.answered(); len(got) != 2 || got[1] != 30 || got[4] != 20 {
				t.Errorf("events by rounds answered: %v, want 30 once, 20 four times", got)
			}
		})
		s.audit(w)
	})
}

// TestTwoOperatorsOfPeople: the rows of one person are one report to two operators, under the key of the person.
func TestTwoOperatorsOfPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 3, deadline: time.Minute, trust: accounting.Split})
		s := newSpy(t, participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			c := w.dear(s)
			c.Rows, c.Policy.MaxEpsilon = true, accounting.MaxEpsilon
			dev := w.client(c)
			byUser(dev, 2, 0)
			sum, err := dev.Run(ctx, threeColumns(letters("abbacabdefgh", time.Now())))
			must(t, err)
			if sum.Events != 8 || sum.Counted != 6 || sum.Unused != 2 || sum.Surplus != 2 {
				t.Errorf("%+v, want 6 of 8 people counted and 2 rows too many", sum)
			}
		})
		s.audit(w)
		for _, id := range []string{"a", "b", "c"} {
			if n := len(s.draws[participation.EventKey(id)]); n != 1 {
				t.Errorf("%s has %d draws, want 1", id, n)
			}
		}
	})
}

// TestTwoOperatorsWithoutAnEnd: a task without an end goes on after its plan, and a user who comes then is counted.
func TestTwoOperatorsWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 5, deadline: time.Minute, trust: accounting.Split})
		w.task.Plan.Continuous = wire.Continuous_CONTINUOUS_CONSTANT
		w.redeclare("schedule.algorithm=psgd", "schedule.continuous=constant")
		s := newSpy(t, participation.NewMemoryStore())
		w.put(t.Context(), w.name.Task(), w.learner, w.task)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan device.Summary, 1)
		dev := w.client(w.dear(s))
		go func() {
			sum, _ := dev.Run(ctx, rows(20, false))
			done <- sum
		}()
		var mixing sync.WaitGroup
		mixing.Go(func() { w.mix(ctx) })
		for r := stream.Round(1); r <= 4; r++ {
			w.put(ctx, w.name.Round(r), w.learner, w.round(r, stream.Step(r)))
			if b := w.batch(ctx, r); b == nil || b.Users != 5 {
				t.Errorf("round %d: %+v, want 5 users", r, b)
			}
		}
		sum := <-done
		stop()
		mixing.Wait()
		if sum.Counted != 20 {
			t.Errorf("%+v, want 20 counted", sum)
		}
		s.audit(w)
	})
}

// threeColumns has rows of the first three columns alone.
func threeColumns(all iter.Seq2[row, error]) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for r, err := range all {
			r.Index[0] %= 3
			if !yield(r, err) {
				return
			}
		}
	}
}
