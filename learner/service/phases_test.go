package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// phased returns a world of three phases: 2 rounds of new users, 4 rounds of the same 45 users, 1 round of new ones.
func phased(t testing.TB, c cast) *world {
	t.Helper()
	w := newWorld(t, c, 0)
	mechanism := func() *wire.Mechanism { return manifest.Mechanism(params, bundle) }
	w.phases = []*wire.Phase{
		{Users: 2*cohort + left, Rounds: 2, Cohort: cohort, Minimum: minimum, RoundsPerUser: 1, Mechanism: mechanism()},
		{Users: 45, Rounds: 4, Cohort: 45, Minimum: minimum, RoundsPerUser: 4, Mechanism: mechanism(), Smoothing: 2},
		{Users: cohort, Rounds: 1, Cohort: cohort, Minimum: minimum, RoundsPerUser: 1, Mechanism: mechanism()},
	}
	w.budget = w.together(45, 4)
	return w
}

// together returns the epsilon that several rounds of n users cost one of them.
func (w *world) together(n uint64, rounds int) float64 {
	w.t.Helper()
	r := release(n)
	r.Rounds = rounds
	g, err := r.Epsilon(delta)
	if err != nil {
		w.t.Fatal(err)
	}
	return g.Epsilon
}

// phasedRun returns the phased world that one learner leaves when nothing disturbs it.
func phasedRun(t *testing.T, c cast, voids ...uint64) *world {
	t.Helper()
	return undisturbedRun(t, func(t *testing.T) *world { return phased(t, c) }, voids...)
}

// TestRoundsOfPhases: a void round of new users is asked again, one of an interactive phase is not: its users would
// answer once more than they agreed to. Each round has its phase's parameters, and is charged with what its user pays
// for the whole phase.
func TestRoundsOfPhases(t *testing.T) {
	w := phasedRun(t, newCast(t), 2, 4, 7)
	public, at, entries := w.trace()
	if !at.Ended() || at.Cursor.Round != 8 {
		t.Fatalf("ended %t after round %d, want an end after 8", at.Ended(), at.Cursor.Round)
	}
	ledger, err := state.ReadLedger(state.Entries(entries))
	if err != nil {
		t.Fatal(err)
	}
	charged := chargedOf(entries)
	for i, want := range []struct {
		step    uint64
		phase   int
		epsilon float64
	}{
		// round 2 was void
		{1, 0, w.together(cohort, 1)}, {2, 0, w.together(cohort+left, 1)}, {2, 0, w.together(cohort+left, 1)},
		{3, 1, w.budget}, {4, 1, w.budget}, {5, 1, w.budget}, {6, 1, w.budget}, // rounds 4 and 7 were, and count
		{7, 2, w.together(cohort, 1)},
	} {
		r := uint64(i) + 1
		var round wire.Round
		if _, err := seal.Verify(public[name.Round(stream.Round(r))], w.learner.Public(), &round); err != nil {
			t.Fatal(err)
		}
		if at, _ := manifest.PhaseOf(&wire.Plan{Phases: w.phases}, round.Step); round.Step != want.step ||
			at.Index != want.phase {
			t.Errorf("round %d: step %d; want step %d of phase %d", r, round.Step, want.step, want.phase+1)
		}
		if charged[i].Epsilon != want.epsilon || charged[i].Round != r {
			t.Errorf("round %d: charged %v, the accountant says %v", r, charged[i].Epsilon, want.epsilon)
		}
	}
	if spent := ledger.Spent(); spent.Epsilon != w.budget {
		t.Errorf("spent %v, %v; four rounds of one user cost %v", spent, err, w.budget)
	}
	var want, most uint64
	for i, e := range charged {
		switch {
		case e.Kind != state.Spent:
		case i >= 3 && i < 7:
			most = max(most, e.Users)
		default:
			want += e.Users
		}
	}
	if ledger.Steps != 5 || ledger.Voids != 3 || ledger.Users() != want+most || most < minimum {
		t.Errorf("%d steps, %d void and %d users, want 5, 3 and %d", ledger.Steps, ledger.Voids, ledger.Users(), want+most)
	}
}

// TestCrashInPhases kills the learner at every effect of a task of phases with void rounds.
func TestCrashInPhases(t *testing.T) {
	people := newCast(t)
	undisturbed := phasedRun(t, people, 2, 4)
	crashes := crashEverywhere(t, undisturbed, func(t *testing.T) *world { return phased(t, people) })
	t.Logf("%d crashes", crashes)
	if want := 2 * (1 + 1 + 8*3 + 1); crashes < want {
		t.Errorf("only %d crashes, want at least %d", crashes, want)
	}
}

// TestBudgetOfAPhase: a phase is refused before its first round where all its rounds together do not fit.
func TestBudgetOfAPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := phased(t, newCast(t))
		w.budget = (w.together(45, 4) + w.together(45, 3)) / 2
		var err error
		w.play(func(ctx context.Context) { err = w.new(w.config()).Run(ctx) })
		var refused *state.BudgetError
		if !errors.As(err, &refused) || refused.Round != 3 || refused.Increment.Epsilon != w.together(45, 4) {
			t.Errorf("Run: %v, want the budget to refuse round 3, the first of the phase", err)
		}
		public, _, _ := w.trace()
		if public[name.Round(3)] != nil || public[name.End()] == nil {
			t.Error("round 3 is announced, or no end")
		}
	})
}

// endless returns a world whose task goes on after its horizon of 3 rounds.
func endless(t testing.TB, c cast) *world {
	t.Helper()
	w := newWorld(t, c, 0)
	w.endless = true
	w.phases = []*wire.Phase{{Users: 3*cohort + left, Rounds: 3, Cohort: cohort, Minimum: minimum, RoundsPerUser: 1,
		Mechanism: manifest.Mechanism(params, bundle)}}
	return w
}

// TestEndlessTask: a task without end goes on after its horizon, with the same cohort, charges no user more than once,
// and is found again as it was left.
func TestEndlessTask(t *testing.T) {
	people := newCast(t)
	const last = 40
	var worlds []*world
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := endless(t, people)
			watch := &counting{last: last}
			w.play(func(ctx context.Context) {
				for watch.round < last {
					life, stop := context.WithCancel(ctx)
					watch.stop, watch.at = stop, last
					if restarts {
						watch.at = watch.round + 7
					}
					c := w.config()
					c.Observer = Observer{Applied: watch.add}
					if err := w.new(c).Run(life); !errors.Is(err, context.Canceled) {
						t.Errorf("Run: %v", err)
					}
					stop()
					w.reopen()
				}
			})
			public, at, entries := w.trace()
			if public[name.End()] != nil || at.Ended() || at.Cursor.Round < last || public[name.Round(last)] == nil {
				t.Errorf("ended %t after round %d", at.Ended(), at.Cursor.Round)
			}
			ledger, err := state.ReadLedger(state.Entries(entries))
			if err != nil {
				t.Fatal(err)
			}
			if spent := ledger.Spent(); spent.Epsilon != w.budget {
				t.Errorf("spent %v, %v after %d rounds; one round costs %v", spent, err, at.Cursor.Round, w.budget)
			}
			var round wire.Round
			if _, err := seal.Verify(public[name.Round(last)], w.learner.Public(), &round); err != nil ||
				w.place(&round).Cohort != cohort || round.Step != last {
				t.Errorf("round %d: step %d, cohort %d, %v", last, round.Step, w.place(&round).Cohort, err)
			}
			if watch.progress.Rounds != 0 || watch.progress.Steps < last {
				t.Errorf("progress %+v", watch.progress)
			}
			worlds = append(worlds, w)
		})
	}
	a, _, _ := worlds[0].trace()
	b, _, _ := worlds[1].trace()
	for r := uint64(1); r <= last; r++ {
		if string(a[name.Round(stream.Round(r))]) != string(b[name.Round(stream.Round(r))]) {
			t.Errorf("round %d of a run with restarts differs", r)
		}
	}
}

// counting stops a life when a round was applied.
type counting struct {
	stop            context.CancelFunc
	at, round, last uint64
	progress        Progress
}

func (c *counting) add(a Applied) {
	c.round, c.progress = a.Round, a.Progress
	if a.Round >= c.at {
		c.stop()
	}
}
