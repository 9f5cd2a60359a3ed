package device_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

func TestEveryRowCounted(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		for _, bundle := range []int{1, 4} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 3, cohort: 40, deadline: time.Minute, sealed: sealed, bundle: 4})
				s := newSpy(t, participation.NewMemoryStore())
				c := w.config(s)
				c.Bundle = bundle
				w.play(t.Context(), func(ctx context.Context) {
					sum, err := w.client(c).Run(ctx, rows(120, true))
					must(t, err)
					checkSum(t, sum)
					if want := (device.Summary{Events: 120, Units: 120, Counted: 120, Invalid: 24, Rounds: 3}); sum != want {
						t.Errorf("sealed %t, bundle %d: %+v, want %+v", sealed, bundle, sum, want)
					}
				})
				s.audit(w)
			})
		}
	}
}

// Two gateways send twice the cohort; what overflows is uncounted and joins the next round first.
func TestOverflowJoinsTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 4, cohort: 30, deadline: time.Minute})
		var spies [2]*spy
		var sums [2]device.Summary
		var start sync.WaitGroup
		start.Add(len(spies))
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for i := range spies {
				spies[i] = newSpy(t, participation.NewMemoryStore())
				cfg := w.config(spies[i])
				cfg.Transport = &meeting{Transport: cfg.Transport, all: &start}
				group.Go(func() {
					var err error
					sums[i], err = w.client(cfg).Run(ctx, rows(60, false))
					must(t, err)
				})
			}
			group.Wait()
		})
		refunds := 0
		for i, s := range spies {
			checkSum(t, sums[i])
			s.audit(w, spies[1-i])
			for _, rounds := range s.draws {
				refunds += len(rounds) - 1
			}
		}
		if total := sums[0].Counted + sums[1].Counted; total != 120 || refunds == 0 {
			t.Errorf("%d counted with %d refunds in %+v: want 120 with some", total, refunds, sums)
		}
	})
}

// A meeting holds the first publish of each client back until all of them have one, so that a round overflows.
type meeting struct {
	stream.Transport
	all  *sync.WaitGroup
	once sync.Once
}

func (m *meeting) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	m.once.Do(func() {
		m.all.Done()
		m.all.Wait()
	})
	return m.Transport.Publish(ctx, reports)
}

// Lost acknowledgements, duplicates, lagging replicas and lost wakes cost outcomes, never a second batch.
func TestFaults(t *testing.T) {
	seeds := uint64(16)
	if longtest.Run(t, "all but the first 16 of 400 seeds") {
		seeds = 400
	}
	for seed := range longtest.Seeds(t, seeds) {
		playFaults(t, seed, accounting.Shuffle)
	}
}

// TestFaultsOfTwoOperators: nor do they where reports are shared between two operators, whose exchange has the same faults.
func TestFaultsOfTwoOperators(t *testing.T) {
	seeds := uint64(8)
	if longtest.Run(t, "all but the first 8 of 200 seeds") {
		seeds = 200
	}
	for seed := range longtest.Seeds(t, seeds) {
		playFaults(t, seed, accounting.Split)
	}
}

// playFaults has two clients send to a broker with the faults of a seed.
func playFaults(t *testing.T, seed uint64, trust accounting.Trust) {
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		w := newWorld(t, plan{
			rounds: 3, cohort: 20, minimum: 5, deadline: 20 * time.Second, sealed: seed%2 == 1, bundle: 3, trust: trust,
			broker: memory.Config{
				Shuffle: true, Seed: seed, Window: 8,
				Inject: memory.Random(seed, memory.Rates{LostAck: 0.1, Lost: 0.1, Duplicate: 0.1, Lag: 0.2}),
			},
		})
		var spies [2]*spy
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for i := range spies {
				spies[i] = newSpy(t, participation.NewMemoryStore())
				c := w.config(spies[i])
				c.Bundle = 1 + int(seed%3)
				group.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					sum, err := w.client(c).Run(ctx, rows(45, true))
					must(t, err)
					checkSum(t, sum)
					if sum.Events != 45 {
						t.Errorf("%d events, want 45", sum.Events)
					}
				})
			}
			group.Wait()
		})
		for i, s := range spies {
			s.audit(w, spies[1-i])
		}
	})
}

// A stage that dies opens the round again; devices seal the same counts for the new key.
func TestNewAttemptSendsTheSameCounts(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Split} {
		playNewAttempt(t, trust)
	}
}

// playNewAttempt kills the stage, or both operators, in the middle of an attempt.
func playNewAttempt(t *testing.T, trust accounting.Trust) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 20, deadline: time.Hour, trust: trust})
		s := newSpy(t, participation.NewMemoryStore())
		c := w.config(s)
		c.Logger = slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { w.learn(ctx) })
		dying, kill := context.WithCancel(ctx)
		group.Go(func() { w.mix(dying) })
		more := make(chan int)
		var sum device.Summary
		var done sync.WaitGroup
		done.Go(func() {
			var err error
			sum, err = w.client(c).Run(ctx, func(yield func(row, error) bool) {
				for n := range more {
					for r, err := range rows(20, false) {
						if r.Number >= int64(n-10) && r.Number < int64(n) && !yield(r, err) {
							return
						}
					}
				}
			})
			must(t, err)
		})
		more <- 10
		synctest.Wait()
		time.Sleep(5 * time.Second)
		kill()
		time.Sleep(30 * time.Second)
		group.Go(func() { w.mix(ctx) })
		time.Sleep(30 * time.Second)
		more <- 20
		close(more)
		done.Wait()
		stop()
		group.Wait()
		if want := (device.Summary{Events: 20, Units: 20, Counted: 20, Rounds: 1}); sum != want {
			t.Errorf("%+v, want %+v", sum, want)
		}
		s.audit(w)
		if w.closed(1, 2) == nil {
			t.Error("want attempt 2 closed")
		}
	})
}

// Under the pan trusts an event that was published to an attempt that died drops out.
func TestPanDropsOut(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Pan, accounting.ShufflePan} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 1, cohort: 4, trust: trust})
			hash := w.announce(ctx, 1)
			s := newSpy(t, participation.NewMemoryStore())
			c := w.client(w.config(s))
			var first, second device.Outcome
			var group sync.WaitGroup
			w.open(ctx, 1, 1, hash)
			group.Go(func() { first, _ = c.Publish(ctx, participation.EventKey("a"), example(1)) })
			time.Sleep(10 * time.Second)
			w.open(ctx, 1, 2, hash)
			time.Sleep(10 * time.Second)
			group.Go(func() { second, _ = c.Publish(ctx, participation.EventKey("b"), example(-1)) })
			time.Sleep(10 * time.Second)
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(2), Manifest: hash, Cutoff: 100})
			group.Wait()
			must(t, c.Close())
			if first.State != participation.Unknown || second.State != participation.Counted {
				t.Errorf("%v: %v and %v, want unknown and counted", trust, first, second)
			}
			if n := w.reports(1, 1) + 10*w.reports(1, 2); n != 11 {
				t.Errorf("%v: reports %d, want one in each attempt", trust, n)
			}
			s.audit(w)
		})
	}
}

// The task has ended and a Close is missing. A gateway that is started again reads its rows one by one, slower than any
// reply comes: it waits for the Close, and does not take rows without an outcome for no rows.
func TestRunWaitsForACloseAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 3})
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if op == memory.Put && strings.Contains(subject, ".close.") {
				return memory.Lost
			}
			return memory.None
		})
		store := participation.NewMemoryStore()
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(store)
			c.CloseWait = time.Hour
			first, stop := context.WithTimeout(ctx, 5*time.Second)
			sum, err := w.client(c).Run(first, rows(3, false))
			stop()
			if !errors.Is(err, context.DeadlineExceeded) || sum.Unknown != 3 {
				t.Fatalf("before the Close: %+v, %v", sum, err)
			}
			time.AfterFunc(20*time.Second, func() { w.broker.Inject(nil) })
			sum, err = w.client(c).Run(ctx, slowly(rows(3, false), 700*time.Millisecond))
			must(t, err)
			if sum.Events != 3 || sum.Counted != 3 {
				t.Errorf("after the Close: %+v, want 3 counted", sum)
			}
		})
	})
}

// slowly waits before each row.
func slowly(all iter.Seq2[task.Row, error], pace time.Duration) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for row, err := range all {
			time.Sleep(pace)
			if !yield(row, err) {
				return
			}
		}
	}
}
