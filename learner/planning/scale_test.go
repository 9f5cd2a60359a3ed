package planning_test

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestPlansOfEveryScale checks that plans from one user to half a trillion add up, can be stored, and build the
// method that they describe.
func TestPlansOfEveryScale(t *testing.T) {
	cases := []struct {
		users   uint64
		dim     int
		epsilon float64
		bits    int
		profile accounting.Constants
		deep    bool
	}{
		{1, 1, 1, 0, accounting.Numeric, false},
		{10, 1, 1, 0, accounting.Numeric, false},
		{100, 10, 0.1, 0, accounting.Numeric, false},
		{32561, 124, 1, 2, accounting.Numeric, false},
		{1000, 1000, 1, 0, accounting.Numeric, true},
		{32561, 124, 60, 0, accounting.Numeric, true},
		{1 << 20, 784, 1, 0, accounting.Numeric, true},
		{1 << 39, 1 << 20, 0.1, 0, accounting.Numeric, true},
		{1 << 30, 124, 1, 0, accounting.Paper, true},
	}
	for _, c := range cases {
		if c.deep && !longtest.Run(t, fmt.Sprintf("%d users in dimension %d", c.users, c.dim)) {
			continue
		}
		p := plan(t, planning.Problem{Users: c.users, Dim: c.dim, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 5},
			Epsilon: c.epsilon, Delta: 1e-6,
			HonestFraction: accounting.One, MaxBits: c.bits, Profile: c.profile,
			Algorithm: schedule.Auto}.ForLoss(convex.Logistic{}, 1, 1))
		if got := (manifest.Planned(p.Plan)-1)*p.Plan.Phases[0].Cohort +
			manifest.LastCohort(p.Plan.Phases[0]); got != c.users || p.Plan.Phases[0].Minimum < 1 ||
			p.Plan.Phases[0].Minimum > p.Plan.Phases[0].Cohort {
			t.Errorf("%+v: %d rounds of %d and %d in the last use %d users; minimum %d", c, manifest.Planned(p.Plan),
				p.Plan.Phases[0].Cohort, manifest.LastCohort(p.Plan.Phases[0]), got, p.Plan.Phases[0].Minimum)
		}
		if p.Vacuous != (p.ExcessRisk >= p.TrivialRisk) || !(p.ExcessRisk > 0) || p.Plan.Clips {
			t.Errorf("%+v: risk %v against %v, vacuous %v, clips %v", c, p.ExcessRisk, p.TrivialRisk, p.Vacuous, p.Plan.Clips)
		}
		if _, err := manifest.Params(p.Plan.Phases[0].Mechanism); (err == nil) != p.Forecasts[0].Privacy.Runnable {
			t.Errorf("%+v: runnable %v, but Params says %v", c, p.Forecasts[0].Privacy.Runnable, err)
		}
		if a, err := learner.New(p.Plan); err != nil || a.Query().Step != 1 || len(a.Query().Point) != c.dim {
			t.Errorf("%+v: New says %v", c, err)
		}
	}
}

func TestForLoss(t *testing.T) {
	p := planning.Problem{}.ForLoss(convex.Squared{}, 2, 3)
	if p.Smoothness != 4 || p.StartRisk != 4.5 || p.Lipschitz <= 1e300 {
		t.Errorf("squared: %+v, want beta 4, start risk 4.5 and no Lipschitz constant", p)
	}
}
