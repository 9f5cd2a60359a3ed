package device_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// The users of an interactive phase take part in each of its rounds, with a draw and a report id of their own for each;
// users of the phases around it take part in one round. Nobody is in two phases.
func TestUsersAnswerEveryRoundOfTheirPhase(t *testing.T) {
	for _, bundle := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 20, deadline: time.Minute, bundle: 4, sealed: bundle == 4})
			w.replan(once(10, 2), asked(20, 4, 0), asked(10, 3, 0), once(10, 1))
			s := newSpy(t, participation.NewMemoryStore())
			c := w.dear(s)
			c.Bundle = bundle
			w.play(t.Context(), func(ctx context.Context) {
				sum, err := w.client(c).Run(ctx, rows(60, true))
				must(t, err)
				checkSum(t, sum)
				if sum.Events != 60 || sum.Counted != 60 || sum.Invalid != 12 {
					t.Errorf("%+v, want 60 events counted", sum)
				}
				if got := s.answered(); len(got) != 3 || got[1] != 30 || got[4] != 20 || got[3] != 10 {
					t.Errorf("events by rounds answered: %v, want 30 once, 20 four times, 10 three times", got)
				}
				for r := stream.Round(1); r <= 10; r++ {
					at, _ := w.place(r)
					if b := w.batch(ctx, r); b.Users != at.Phase.Cohort || b.Attempt != 1 {
						t.Errorf("round %d: %d users in attempt %d, want all %d in the first", r, b.Users, b.Attempt, at.Phase.Cohort)
					}
				}
			})
			s.audit(w)
		})
	}
}

// Two gateways have twice the users that an interactive phase takes. Those whom its first round does not count leave
// it to the others, and are the users of the phase after it: nobody starves.
func TestCrowdedInteractivePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 4, cohort: 30, deadline: time.Minute})
		w.replan(asked(30, 5, 0), once(15, 2))
		var spies [2]*spy
		var sums [2]device.Summary
		var start sync.WaitGroup
		start.Add(len(spies))
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for i := range spies {
				spies[i] = newSpy(t, participation.NewMemoryStore())
				cfg := w.dear(spies[i])
				cfg.Transport = &meeting{Transport: cfg.Transport, all: &start}
				group.Go(func() {
					var err error
					sums[i], err = w.client(cfg).Run(ctx, rows(30, false))
					must(t, err)
				})
			}
			group.Wait()
		})
		for i, s := range spies {
			checkSum(t, sums[i])
			s.audit(w, spies[1-i])
		}
		if sums[0].Counted+sums[1].Counted != 60 {
			t.Errorf("%+v: want 60 counted", sums)
		}
		for r := stream.Round(1); r <= 7; r++ {
			if b := w.batch(t.Context(), r); b == nil || b.Void || b.Attempt != 1 {
				t.Errorf("round %d: %+v", r, b)
			}
		}
	})
}

// A gateway leaves in the middle of an interactive phase: the rounds after that go on with the minimum, or with users
// who come late and answer what is left.
func TestLeaversAndLateComers(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 4, cohort: 20, deadline: time.Minute})
			w.replan(asked(20, 5, 8))
			leaver, stayer, comer := newSpy(t, participation.NewMemoryStore()), newSpy(t, participation.NewMemoryStore()),
				newSpy(t, participation.NewMemoryStore())
			others := []*spy{leaver, stayer, comer}
			w.play(t.Context(), func(ctx context.Context) {
				var group sync.WaitGroup
				leaves, leave := context.WithCancel(ctx)
				run := func(ctx context.Context, s *spy, source string, n int) {
					c := w.dear(s)
					c.Source = source
					group.Go(func() {
						sum, err := w.client(c).Run(ctx, rows(n, false))
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						if s != leaver && (sum.Events != uint64(n) || sum.Counted != uint64(n)) {
							t.Errorf("%s: %+v, want %d counted", source, sum, n)
						}
					})
				}
				run(leaves, leaver, "leaver", 11)
				run(ctx, stayer, "stayer", 9)
				w.batch(ctx, 2)
				leave()
				if late {
					run(ctx, comer, "comer", 5)
				}
				group.Wait()
				most := uint64(9)
				if late {
					most += 5
				}
				for r := stream.Round(4); r <= 5; r++ {
					if b := w.batch(ctx, r); b.Users > 20 || b.Users < 9 || b.Users > most {
						t.Errorf("round %d has %d users", r, b.Users)
					}
				}
				if late {
					if b := w.batch(ctx, 5); b.Users != most {
						t.Errorf("the last round has %d users, want %d and %d who came late", b.Users, 9, 5)
					}
				}
			})
			for i, s := range others {
				rest := append(append([]*spy{}, others[:i]...), others[i+1:]...)
				s.audit(w, rest...)
			}
			for n := range comer.answered() {
				if n > 3 {
					t.Errorf("who came in the third round answered %d rounds of five", n)
				}
			}
			if n := stayer.answered(); n[5] != 9 {
				t.Errorf("who stayed answered %v, want 5 rounds each", n)
			}
		})
	}
}

// A process dies at each write of its store in the middle of interactive phases, and another one goes on: the same
// users answer the rounds that are left, each once.
func TestDeathInAnInteractivePhase(t *testing.T) {
	for _, lost := range []bool{true, false} {
		reached := true
		for i := 1; reached; i++ {
			if i > 300 {
				t.Fatal("the run never gets by without the death")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 3, cohort: 12, minimum: 4, deadline: 30 * time.Second, bundle: 3})
				w.replan(asked(12, 4, 4), once(6, 1), asked(6, 2, 3))
				s := newSpy(t, participation.NewMemoryStore())
				s.failAt, s.lost = i, lost
				w.play(t.Context(), func(ctx context.Context) {
					c := w.dear(s)
					c.Bundle, c.Shuffle = 2, i%3*15
					sum, err := w.client(c).Run(ctx, rows(24, true))
					checkSum(t, sum)
					if reached = errors.Is(err, errDied); !reached {
						must(t, err)
					}
					s.failAt = 0
					c.Bundle = 1
					sum, err = w.client(c).Run(ctx, rows(24, true))
					must(t, err)
					checkSum(t, sum)
					if sum.Events != 24 || (!reached && sum.Counted != 24) {
						t.Errorf("died %t at write %d: %+v", reached, i, sum)
					}
				})
				s.audit(w)
			})
		}
	}
}

// The broker misbehaves in every way: outcomes are lost, and nobody takes part more often than was agreed.
func TestInteractivePhaseOnALossyBroker(t *testing.T) {
	for seed := range longtest.Seeds(t, uint64(12)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 12, minimum: 1, deadline: 20 * time.Second,
				broker: memory.Config{Shuffle: seed%2 == 0, Seed: seed}})
			w.replan(asked(12, 4, 1), once(6, 2), asked(6, 3, 1))
			w.broker.Inject(memory.Random(seed, memory.Rates{LostAck: 0.2, Lost: 0.1, Duplicate: 0.2, Lag: 0.2}))
			s := newSpy(t, participation.NewMemoryStore())
			w.play(t.Context(), func(ctx context.Context) {
				sum, err := w.client(w.dear(s)).Run(ctx, rows(30, false))
				must(t, err)
				checkSum(t, sum)
				if sum.Events != 30 || sum.Counted == 0 {
					t.Errorf("%+v", sum)
				}
			})
			s.audit(w)
		})
	}
}

// announced is a round, with the step that it is said to be.
type announced struct {
	round stream.Round
	step  stream.Step
}

// What a learner that lies may try with phases: each of these rounds is signed by it and is of its task, and none is
// answered.
func TestHostileSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		first announced
		then  announced
	}{
		{"an interactive step twice", announced{1, 1}, announced{2, 1}},
		{"a step back", announced{3, 3}, announced{4, 2}},
		{"a step left out", announced{3, 2}, announced{4, 4}},
		{"the first phase again", announced{6, 5}, announced{7, 1}},
		{"the last step of the first phase again", announced{6, 5}, announced{7, 4}},
		{"the third phase before its time", announced{5, 4}, announced{7, 7}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 12})
			w.replan(asked(12, 4, 0), once(6, 2), asked(6, 3, 0))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s := newSpy(t, participation.NewMemoryStore())
			cl := w.client(w.dear(s))
			w.put(ctx, w.name.Task(), w.learner, w.task)
			say := func(a announced) {
				m := w.round(a.round, a.step)
				w.put(ctx, w.name.Round(a.round), w.learner, m)
				hash, err := manifest.RoundHash(m)
				must(t, err)
				w.open(ctx, a.round, 1, hash)
				time.Sleep(time.Minute)
			}
			outcome := make(chan error, 1)
			go func() {
				_, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
				outcome <- err
			}()
			say(c.first)
			synctest.Wait()
			if len(s.draws) != 1 {
				t.Fatalf("%s: the round before is not answered", c.name)
			}
			say(c.then)
			err := cl.Close()
			var refused *consent.RefusedError
			if !errors.As(err, &refused) || refused.Field != fmt.Sprintf("round %d: step", c.then.round) {
				t.Errorf("%s: %v, want the step to be refused", c.name, err)
			}
			for _, rounds := range s.draws {
				if len(rounds) != 1 {
					t.Errorf("%s: %d rounds were answered", c.name, len(rounds))
				}
			}
			<-outcome
			// A process that starts again has not seen the round before, but its store has: the event is not drawn
			// for again.
			again := w.client(w.dear(s))
			ask, cancel := context.WithTimeout(ctx, time.Minute)
			_, _ = again.Publish(ask, participation.EventKey("a"), example(1))
			cancel()
			_ = again.Close()
			for _, rounds := range s.draws {
				if len(rounds) != 1 {
					t.Errorf("%s: %d rounds were answered after a restart", c.name, len(rounds))
				}
			}
		})
	}
}

// A void round is charged like the others of its phase, and its users answer the rounds after it.
func TestVoidRoundOfAnInteractivePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 2})
		w.replan(asked(2, 3, 0))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := newSpy(t, participation.NewMemoryStore())
		book := memory.NewLedger()
		c := w.dear(s)
		c.Ledger = book
		cl := w.client(c)
		done := make(chan device.Summary, 1)
		go func() {
			sum, err := cl.Run(ctx, rows(2, false))
			if err != nil {
				t.Error(err)
			}
			done <- sum
		}()
		for r := stream.Round(1); r <= 3; r++ {
			hash := w.announce(ctx, r)
			w.open(ctx, r, 1, hash)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := s.answered(); got[int(r)] != 2 {
				t.Fatalf("round %d: events by rounds answered: %v", r, got)
			}
			w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40, Void: r < 3})
			time.Sleep(time.Minute)
			statement, err := ledger.ReadStatement(book, time.Now(), 0)
			must(t, err)
			agreement, err := cl.Agreement(ctx)
			must(t, err)
			if one := statement.Tasks[0]; stream.Round(one.Rounds) != r || one.Most != 3 || one.Standing != 2 || one.Open != 0 ||
				one.Epsilon != agreement.Guarantee.Epsilon || statement.Epsilon != agreement.Guarantee.Epsilon {
				t.Errorf("after round %d the ledger says %+v, in all %v; the three rounds cost %v", r, one, statement.Epsilon,
					agreement.Guarantee.Epsilon)
			}
		}
		w.end(ctx, 3)
		if sum := <-done; sum.Counted != 2 || sum.Events != 2 || sum.Rounds != 1 {
			t.Errorf("%+v: want both counted, in the last round", sum)
		}
	})
}

// TestInteractiveCost: the rounds of a phase are asked for together, which costs less than their sum and more than
// one, and a policy for one round refuses them.
func TestInteractiveCost(t *testing.T) {
	w := newWorld(t, plan{rounds: 3, cohort: 50})
	policy := consent.Policy{AllowPlaintext: true, MaxEpsilon: 50}
	one, err := policy.CheckTask(w.task, w.hash)
	must(t, err)
	w.replan(asked(50, 4, 0))
	four, err := policy.CheckTask(w.task, w.hash)
	must(t, err)
	if e := four.Guarantee.Epsilon; !(e > 1.5*one.Guarantee.Epsilon) || !(e < 4*one.Guarantee.Epsilon) ||
		four.Phases[0].Rounds != 4 {
		t.Errorf("four rounds cost %v, one costs %v", e, one.Guarantee.Epsilon)
	}
	policy.MaxEpsilon = one.Guarantee.Epsilon
	_, err = policy.CheckTask(w.task, w.hash)
	refusal(t, "the budget of one round", err, "plan.phases[0]: epsilon")
	pan := w.task
	pan.Plan.Trust = wire.Trust_TRUST_SHUFFLE_PAN
	pan.Plan.Phases[0].Mechanism.FloorTrials = 400
	_, err = consent.Policy{AllowPlaintext: true, MaxEpsilon: 50}.CheckTask(pan, stream.Hash{})
	refusal(t, "interactive under floors", err, "plan")
}
