package planning_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Looks and gradients of silos are about blocks of one size, and all of them fit into what a silo has; each is charged within the budget.
func TestPracticalPlanOfSilos(t *testing.T) {
	for _, c := range []struct {
		loss            string
		count, reports  uint64
		units           uint64
		trust           accounting.Trust
		phases, planned uint64
	}{
		{"logistic", 20, 20, 1600, accounting.Local, 2, 9},
		{"logistic", 20, 10, 1600, accounting.Local, 2, 9},
		{"logistic", 500, 500, 8, accounting.Local, 2, 5},
		{"logistic", 20, 20, 1600, accounting.Shuffle, 2, 9},
		{"squared", 20, 20, 1600, accounting.Local, 3, 6},
		{"logistic", 2000, 2000, 2, accounting.Local, 2, 2},
	} {
		p := inPractice(c.loss, c.count*c.units)
		p.Trust, p.Silos = c.trust, planning.Silos{Count: c.count, Units: c.units, Reports: c.reports, Least: c.units}
		if c.trust == accounting.Shuffle {
			p.HonestFraction, _ = accounting.ParseFraction("0.95")
		}
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		rounds, blocks := manifest.Planned(plan.Plan), p.Silos.Blocks(manifest.Planned(plan.Plan))
		if uint64(len(plan.Plan.Phases)) != c.phases || rounds != c.planned {
			t.Errorf("%+v: %d rounds in %d phases", c, rounds, len(plan.Plan.Phases))
		}
		for i, f := range plan.Plan.Phases {
			of := plan.Forecasts[i].Privacy
			if of.ProvedEpsilon == nil || *of.ProvedEpsilon > p.Epsilon || of.Users != c.reports || of.Dim != int(f.Mechanism.Dim) || of.Units != max(1, f.Mechanism.Units) {
				t.Errorf("%+v: phase %d is charged as %+v", c, i+1, of)
			}
			if f.Cohort != c.reports || f.Users != f.Rounds*c.reports || f.RoundsPerUser != 1 || max(1, f.Mechanism.Units) != blocks {
				t.Errorf("%+v: phase %d of %d blocks of %d units, %d in all, want blocks of %d", c, i+1, f.Cohort, f.Mechanism.Units, f.Users, blocks)
			}
			if window := f.Mechanism.Window > 0; window != (c.trust == accounting.Local) {
				t.Errorf("%+v: phase %d: window %d", c, i+1, f.Mechanism.Window)
			}
		}
		how := manifest.Practical(plan.Plan)
		if !how.Even || how.Users != p.Users || how.Interactive || !math.IsInf(plan.ExcessRisk, 1) {
			t.Errorf("%+v: %+v, risk %v", c, how, plan.ExcessRisk)
		}
		// One coordinate of a round's sum is what Unit says of everybody's, but for the units that do not go into blocks.
		last := plan.Plan.Phases[len(plan.Plan.Phases)-1]
		of := plan.Forecasts[len(plan.Forecasts)-1].Privacy
		got := math.Hypot(of.NoiseStd, of.RoundingStd) * float64(blocks*c.reports)
		if math.Abs(got/plan.Plan.Practical.Unit-1) > 0.03 {
			t.Errorf("%+v: a round's noise is that of unit %v, want %v", c, got, plan.Plan.Practical.Unit)
		}
		if _, err := learner.New(plan.Plan); err != nil || last.Statistic != wire.Statistic_STATISTIC_GRADIENT {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p := inPractice("logistic", 32000)
	p.Trust, p.Silos, p.Interactive = accounting.Local, planning.Silos{Count: 20, Units: 1600, Reports: 20, Least: 1600}, true
	if _, err := planning.MakePlan(p); err == nil {
		t.Error("silos that answer all rounds have a practical plan, which nothing can run yet")
	}
	p.Interactive, p.FirstCohort = false, 5
	if _, err := planning.MakePlan(p); err == nil {
		t.Error("silos have a first cohort of another size")
	}
	p.FirstCohort, p.Silos, p.Users = 0, planning.Silos{Count: 32000, Units: 1, Reports: 32000, Least: 1}, 32000
	if _, err := planning.MakePlan(p); err == nil {
		t.Error("one unit a silo is not two blocks")
	}
}

// People whose mean gradient is cut to a radius have its noise in the unit that steps follow from; their moments are cut at their norm.
func TestPracticalPlanOfPeople(t *testing.T) {
	p := inPractice("logistic", 20_000)
	whole, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	p.ByUser, p.Radius = true, 0.25
	plan, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plan.Plan.Practical.Unit, whole.Plan.Practical.Unit/4; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("unit %v, want %v", got, want)
	}
	if a, b := plan.Plan.Phases[0], whole.Plan.Phases[0]; a.Users != b.Users || a.Mechanism.ClipNorm != b.Mechanism.ClipNorm {
		t.Errorf("moments %v, want %v", a, b)
	}
	if f := manifest.Gradients(plan.Plan); f.Mechanism.ClipNorm != 0.25 {
		t.Errorf("gradients are encoded at norm %v, want 0.25", f.Mechanism.ClipNorm)
	}
	if how := manifest.Practical(plan.Plan); how.Radius != 0.25 || how.Even {
		t.Errorf("%+v", how)
	}
}
