package service

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPlanOverItsBudget: nothing is committed and nothing is announced.
func TestPlanOverItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		w.budget *= 1 - 1e-6 // below what a round costs by more than the search for epsilon leaves open
		err := w.new(w.config()).Run(t.Context())
		var refused *state.BudgetError
		if !errors.As(err, &refused) || refused.Round != 1 || refused.Budget.Epsilon != w.budget ||
			refused.Spent.Epsilon != 0 {
			t.Fatalf("Run: %v, want the budget to refuse round 1", err)
		}
		if public, at, _ := w.trace(); len(public) != 0 || !at.IsZero() {
			t.Errorf("%d records stand, committed %t: want nothing", len(public), !at.IsZero())
		}
	})
}

// TestBudgetIsMetToTheLastBit: the search for epsilon ends a bit above the smallest value. Where the budget is
// that bit below, the accountant is asked at the budget itself, and the charge is the budget if delta holds
// there; a budget at which delta does not hold is not charged instead of epsilon.
func TestBudgetIsMetToTheLastBit(t *testing.T) {
	w := newWorld(t, newCast(t), 3)
	epsilon := w.budget
	for _, c := range []struct{ budget, want float64 }{
		{epsilon, epsilon}, {2 * epsilon, epsilon}, {epsilon * (1 - 1e-6), epsilon}, {epsilon / 2, epsilon},
		{math.Nextafter(epsilon, 0), math.NaN()},
	} {
		want := c.want
		if math.IsNaN(want) { // whatever delta at that budget says
			f, err := release(cohort).Delta(c.budget)
			if err != nil {
				t.Fatal(err)
			}
			if want = epsilon; f.Delta <= delta {
				want = c.budget
			}
		}
		w.budget = c.budget
		body, err := w.body()
		if err != nil {
			t.Fatal(err)
		}
		at, _ := manifest.PhaseOf(body.Plan, 1)
		cost, err := (&core{task: body}).cost(at)
		if err != nil || cost.Epsilon != want || cost.Delta != delta {
			t.Errorf("budget %v: cost %v, %v; want epsilon %v", c.budget, cost, err, want)
		}
	}
}

// TestLedgerIsTheAccountants: every entry holds the accountant's epsilon for its round's cohort, computed here
// again from the announced parameters, and no round cost less than was reserved.
func TestLedgerIsTheAccountants(t *testing.T) {
	w := undisturbedWorld(t, newCast(t), 3)
	_, _, ledger := w.trace()
	if len(ledger) != 6 {
		t.Fatalf("%d entries, want a reservation and a cost of 3 rounds", len(ledger))
	}
	for i := 0; i < len(ledger); i += 2 {
		reserved, spent := ledger[i], ledger[i+1]
		n := uint64(cohort)
		if reserved.Round == 3 {
			n += left
		}
		m := n - reserved.Round%3
		if want := epsilonOf(t, n); reserved.Epsilon != want || spent.Epsilon != want || spent.Delta != delta ||
			reserved.Delta != delta {
			t.Errorf("round %d: reserved %v and spent %v, the accountant says %v", reserved.Round, reserved.Cost(), spent.Cost(),
				want)
		}
		if spent.Epsilon < reserved.Epsilon {
			t.Errorf("round %d: spent less than was reserved", reserved.Round)
		}
		if reserved.Users != minimum || reserved.NoiseTrials != n*64 || spent.Users != m || spent.NoiseTrials != n*64 {
			t.Errorf("round %d: reserved for %d users and %d trials, spent on %d and %d", reserved.Round,
				reserved.Users, reserved.NoiseTrials, spent.Users, spent.NoiseTrials)
		}
	}
}

// TestBudgetSpentMidway: a round that costs more than planned (here by an altered ledger) leaves no budget for
// the next. The task ends by a signed End with the reason, and Run returns the refusal, also at the next start.
func TestBudgetSpentMidway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		w.voids = map[uint64]bool{1: true} // a void round stays charged with its reservation
		body, err := w.body()
		if err != nil {
			t.Fatal(err)
		}
		body.Version, body.Name, body.LearnerKey, body.StageKey = 1, string(name), w.learner.Public(), w.stage.Public()
		start, err := begin(w.learner, body)
		if err != nil {
			t.Fatal(err)
		}
		dear, ledger := start.entries[0], &state.Ledger{}
		dear.Epsilon *= 2
		if dear, err = ledger.Reserve(dear, state.Cost{Epsilon: 2 * w.budget, Delta: delta}); err != nil {
			t.Fatal(err)
		}
		start.next.Ledger = *ledger
		if err := w.store.Commit(t.Context(), start.next, []state.Entry{dear}); err != nil {
			t.Fatal(err)
		}
		var first, second error
		w.play(func(ctx context.Context) {
			first = w.new(w.config()).Run(ctx)
			w.reopen()
			second = w.new(w.config()).Run(ctx)
		})
		for _, err := range []error{first, second} {
			var refused *state.BudgetError
			if !errors.As(err, &refused) || refused.Round != 2 || refused.Spent.Epsilon != 2*w.budget ||
				refused.Increment.Epsilon != w.budget {
				t.Errorf("Run: %v, want the budget to refuse round 2", err)
			}
		}
		public, at, _ := w.trace()
		var end wire.End
		if _, err := seal.Verify(public[name.End()], w.learner.Public(), &end); err != nil {
			t.Fatal(err)
		}
		if end.Reason != ReasonBudget || end.LastRound != 1 || !at.Ended() || public[name.Round(2)] != nil {
			t.Errorf("End says %q after round %d", end.Reason, end.LastRound)
		}
	})
}

// TestPlansThatAreRefused before anything is committed or announced.
func TestPlansThatAreRefused(t *testing.T) {
	for what, change := range map[string]func(*wire.Plan){
		"two rounds per user":  func(p *wire.Plan) { p.Phases[0].RoundsPerUser = 2 },
		"too few users":        func(p *wire.Plan) { p.Phases[0].Users = p.Phases[0].Rounds*p.Phases[0].Cohort - 1 },
		"no minimum":           func(p *wire.Plan) { p.Phases[0].Minimum = 0 },
		"an honest fraction":   func(p *wire.Plan) { p.HonestFraction = "1.5" },
		"a budget without end": func(p *wire.Plan) { p.EpsilonBudget = math.Inf(1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 2)
			c := w.config()
			c.Prepare = func() (*wire.Task, error) {
				body, err := w.body()
				change(body.Plan)
				return body, err
			}
			if err := w.new(c).Run(t.Context()); err == nil {
				t.Errorf("%s: taken", what)
			}
			if public, at, _ := w.trace(); len(public) != 0 || !at.IsZero() {
				t.Errorf("%s: something is committed or announced", what)
			}
		})
	}
}
