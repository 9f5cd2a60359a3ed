package planning

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestUnequalSilos: noise of a silo is in proportion to one over its rows, so that of three of 1000, 2000 and 4000, planned
// for 1000 with noise s, is s, s/2 and s/4 to a few percent more; the mean over silos has s/3 sqrt(1 + 1/4 + 1/16), and where
// they weigh as their rows each of the three has s/7. Of silos all as planned the bound is the plan's; larger ones have a
// smaller bound, and smaller ones a larger one.
func TestUnequalSilos(t *testing.T) {
	p := Problem{Users: 3000, Dim: 4, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 2}, Epsilon: 0.1, Delta: 1e-6,
		Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: schedule.PGD, Rounds: Rounds{Interactive: true},
		Silos: Silos{Count: 3, Units: 1000, Least: 600, Reports: 3}}
	p = p.ForLoss(convex.Logistic{}, 1, -1, 1)
	plan, err := MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	of := func(rows ...uint64) unequalBound {
		t.Helper()
		out, err := p.Unequal(plan, rows)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := of(1000, 1000, 1000)
	if math.Abs(all.Bound/plan.ExcessRisk-1) > 1e-9 || all.Least != all.Largest || math.Abs(all.Mean/all.ByRows-1) > 1e-12 {
		t.Errorf("%+v, of the plan %v", all, plan.ExcessRisk)
	}
	s := plan.Forecasts[0].Privacy.NoiseStd * math.Sqrt(3)
	u := of(1000, 2000, 4000)
	for what, v := range map[string][2]float64{"the smallest silo's report": {u.Largest, s}, "the largest's": {u.Least, s / 4},
		"the mean": {u.Mean, s / 3 * math.Sqrt(21./16)}, "by rows": {u.ByRows, s / 7 * math.Sqrt(3)}} {
		if !(v[0] >= 0.999*v[1] && v[0] < 1.08*v[1]) { // rounding adds to small shifts
			t.Errorf("%s: noise %v, want %v", what, v[0], v[1])
		}
	}
	// The smallest silo is as planned: all that differs from the plan's bound is the noise of the mean, s/3 sqrt(21/16) where
	// it was s/sqrt 3.
	own := plan
	own.Forecasts = slices.Clone(plan.Forecasts)
	own.Forecasts[0].Privacy.NoiseStd = u.Mean
	if want, ok := p.with(own, func(f *wire.Phase) turnout { return turnout{f.Cohort: 1} }); len(own.Forecasts) != 1 || !ok ||
		math.Abs(u.Bound/want-1) > 1e-9 {
		t.Errorf("bound %v, with the noise of the mean %v", u.Bound, want)
	}
	if small := of(600, 1000, 1000); !(u.Bound < plan.ExcessRisk) || !(small.Bound > plan.ExcessRisk) {
		t.Errorf("bounds %v, %v, of the plan %v", u.Bound, small.Bound, plan.ExcessRisk)
	}
	for _, rows := range [][]uint64{{1000}, {500, 1000, 1000}, nil} {
		if _, err := p.Unequal(plan, rows); err == nil {
			t.Errorf("%v: no error", rows)
		}
	}
	p.Trust = accounting.Shuffle
	if _, err := p.Unequal(plan, []uint64{1000, 1000, 1000}); err == nil {
		t.Error("trust shuffle, where no silo has noise of its own")
	}
}
