package service

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// preconditioned is a world whose first 41 users are asked for second moments, before 3 rounds of gradients.
func preconditioned(t testing.TB, c cast) *world {
	t.Helper()
	w := newWorld(t, c, 0)
	mechanism := func() *wire.Mechanism { return manifest.Mechanism(params, bundle) }
	w.phases = []*wire.Phase{
		{Users: 41, Rounds: 1, Cohort: 41, Minimum: minimum, RoundsPerUser: 1, Mechanism: mechanism(), Statistic: wire.Statistic_STATISTIC_SECOND_MOMENTS},
		{Users: 3*cohort + left, Rounds: 3, Cohort: cohort, Minimum: minimum, RoundsPerUser: 1, Mechanism: mechanism()},
	}
	return w
}

func preconditionedRun(t *testing.T, c cast, voids ...uint64) *world {
	t.Helper()
	return undisturbedRun(t, func(t *testing.T) *world { return preconditioned(t, c) }, voids...)
}

// TestVoidMoments: nobody learns before there are moments: a void round of moments is asked again, of new users. All rounds after it
// have the scales that it gave. Each user is charged for the one round that he answered.
func TestVoidMoments(t *testing.T) {
	w := preconditionedRun(t, newCast(t), 1, 2, 5)
	public, at, entries := w.trace()
	if !at.Ended() || at.Cursor.Round != 7 {
		t.Fatalf("ended %t after round %d, want an end after 7", at.Ended(), at.Cursor.Round)
	}
	ledger, err := state.ReadLedger(state.Entries(entries))
	if err != nil {
		t.Fatal(err)
	}
	charged := ledger.Charged()
	var scales []float64
	for i, step := range []uint64{1, 1, 1, 2, 3, 3, 4} { // rounds 1, 2 and 5 were void
		r := uint64(i) + 1
		var round wire.Round
		if _, err := seal.Verify(public[name.Round(stream.Round(r))], w.learner.Public(), &round); err != nil {
			t.Fatal(err)
		}
		moments := step == 1
		if round.Step != step || (len(round.Point) == 0) != moments || (len(round.Scales) == dim) == moments {
			t.Errorf("round %d: step %d, %d coordinates, scales %v", r, round.Step, len(round.Point), round.Scales)
		}
		if scales == nil {
			scales = round.Scales
		}
		if !moments && !slices.Equal(round.Scales, scales) {
			t.Errorf("round %d: scales %v, before %v", r, round.Scales, scales)
		}
		users := uint64(cohort)
		switch step {
		case 1:
			users = 41
		case 4:
			users += left
		}
		if want := epsilonOf(t, users); charged[i].Epsilon != want || charged[i].Round != r {
			t.Errorf("round %d: charged %v, the accountant says %v", r, charged[i].Epsilon, want)
		}
	}
	if spent := ledger.Spent(); spent.Epsilon != w.budget {
		t.Errorf("spent %v, %v; the costliest round costs %v", spent, err, w.budget)
	}
	if steps, _ := Tally(&wire.Plan{Phases: w.phases}, slices.Values(charged)); steps != 4 {
		t.Errorf("%d steps, want 4", steps)
	}
}

// TestCrashAroundMoments kills the learner at every effect of a task of moments, the first round of which is void.
func TestCrashAroundMoments(t *testing.T) {
	people := newCast(t)
	undisturbed := preconditionedRun(t, people, 1)
	crashes := crashEverywhere(t, undisturbed, func(t *testing.T) *world { return preconditioned(t, people) })
	if want := 2 * (1 + 1 + 5*3 + 1); crashes < want {
		t.Errorf("only %d crashes, want at least %d", crashes, want)
	}
}
