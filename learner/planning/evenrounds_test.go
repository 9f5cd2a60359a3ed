package planning_test

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPracticalPlanOfSilos: looks and gradients of silos are about blocks of one size, and all of them fit into
// what a silo has; each is charged within the budget.
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
			if of.ProvedEpsilon == nil || *of.ProvedEpsilon > p.Epsilon || of.Users != c.reports ||
				of.Dim != int(f.Mechanism.Dim) || of.Units != max(1, f.Mechanism.Units) {
				t.Errorf("%+v: phase %d is charged as %+v", c, i+1, of)
			}
			if f.Cohort != c.reports || f.Users != f.Rounds*c.reports || f.RoundsPerUser != 1 ||
				max(1, f.Mechanism.Units) != blocks {
				t.Errorf("%+v: phase %d of %d blocks of %d units, %d in all, want blocks of %d", c, i+1, f.Cohort,
					f.Mechanism.Units, f.Users, blocks)
			}
			if window := f.Mechanism.Window > 0; window != (c.trust == accounting.Local) {
				t.Errorf("%+v: phase %d: window %d", c, i+1, f.Mechanism.Window)
			}
		}
		how := manifest.Practical(plan.Plan)
		if !how.Even || how.Users != p.Users || how.Interactive || !math.IsInf(plan.ExcessRisk, 1) {
			t.Errorf("%+v: %+v, risk %v", c, how, plan.ExcessRisk)
		}
		// The variance of one coordinate of a round's sum follows from Unit, apart from the units that do not
		// go into blocks.
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
	p.Trust, p.Silos, p.FirstCohort = accounting.Local, planning.Silos{Count: 20, Units: 1600, Reports: 20, Least: 1600}, 5
	for _, p.Interactive = range []bool{false, true} {
		if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "first cohort: 5") {
			t.Errorf("silos have a first cohort of another size: %v", err)
		}
	}
	p.Interactive, p.FirstCohort, p.Silos, p.Users = false, 0, planning.Silos{Count: 32000, Units: 1, Reports: 32000,
		Least: 1}, 32000
	if _, err := planning.MakePlan(p); err == nil {
		t.Error("one unit a silo is not two blocks")
	}
}

// TestPracticalPlanOfStints: silos, or people, who answer all rounds are charged for all of them together,
// looks too: one stint, whose cost no phase has alone. Some of the silos answer a round, and each pays as if it
// were asked in all.
func TestPracticalPlanOfStints(t *testing.T) {
	shares := func(fraction string) accounting.Fraction {
		f, err := accounting.ParseFraction(fraction)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		loss   string
		users  uint64
		silos  planning.Silos
		trust  accounting.Trust
		honest string
		radius float64
		phases int
		rounds uint64
	}{
		{"logistic", 32000, planning.Silos{Count: 20, Units: 1600, Reports: 20, Least: 1067}, accounting.Local, "1", 0, 2,
			13},
		{"logistic", 32000, planning.Silos{Count: 1000, Units: 32, Reports: 1000, Least: 32}, accounting.Local, "1", 0, 2,
			13},
		{"logistic", 32000, planning.Silos{Count: 20, Units: 1600, Reports: 12, Least: 1600}, accounting.Local, "1", 0, 2,
			13},
		{"logistic", 32000, planning.Silos{Count: 20, Units: 1600, Reports: 12, Least: 1600}, accounting.Shuffle, "11/12", 0,
			2, 13},
		{"squared", 32000, planning.Silos{Count: 20, Units: 1600, Reports: 20, Least: 1600}, accounting.Shuffle, "19/20", 0,
			3, 6},
		{"logistic", 2000, planning.Silos{}, accounting.Shuffle, "0.9", 0.25, 2, 13},
		{"logistic", 2000, planning.Silos{}, accounting.Shuffle, "0.9", 0, 2, 13},
	} {
		p := inPractice(c.loss, c.users)
		p.Trust, p.Silos, p.Interactive, p.HonestFraction, p.Radius = c.trust, c.silos, true, shares(c.honest), c.radius
		p.ByUser, p.Minimum = c.silos.Count == 0, 10
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		users, cohort, units := c.users-c.users/100, c.users-c.users/100, uint64(1)
		if c.silos.Count > 0 {
			users, cohort, units = c.silos.Count, c.silos.Reports, c.silos.Units
		}
		if got := manifest.Planned(plan.Plan); got != c.rounds || len(plan.Plan.Phases) != c.phases ||
			manifest.Users(plan.Plan) != users {
			t.Errorf("%+v: %d rounds in %d phases of %d", c, got, len(plan.Plan.Phases), manifest.Users(plan.Plan))
		}
		var most float64
		for i, f := range plan.Plan.Phases {
			of := plan.Forecasts[i].Privacy
			m, first := f.Mechanism, plan.Plan.Phases[0].Mechanism
			if f.Again != (i > 0) || f.Users != users || f.Cohort != cohort || uint64(f.RoundsPerUser) != f.Rounds ||
				f.Minimum != 10 {
				t.Errorf("%+v: phase %d: %v", c, i+1, f)
			}
			if max(1, m.Units) != units || m.Levels != first.Levels || m.Trials != first.Trials ||
				(m.Window > 0) != (c.trust == accounting.Local) {
				t.Errorf("%+v: phase %d: mechanism %v", c, i+1, m)
			}
			if alone, err := of.Release().Epsilon(p.Delta); err != nil || alone.Epsilon != of.Epsilon ||
				of.Epsilon != *of.ProvedEpsilon {
				t.Errorf("%+v: phase %d costs %v alone, the forecast says %v: %v", c, i+1, alone.Epsilon, of.Epsilon, err)
			}
			most = max(most, of.Epsilon)
		}
		at := manifest.Costliest(plan.Plan, 0)
		releases, err := at.Releases(p.HonestFraction)
		if err != nil || at.Stint.Phases != c.phases || uint64(at.Stint.Rounds) != c.rounds || at.Cohort != cohort {
			t.Fatalf("%+v: stint %+v of %d, %v", c, at.Stint, at.Cohort, err)
		}
		together, err := accounting.RepeatedWithin(1, [][]accounting.Release{releases}, accounting.Budget{Epsilon: p.Epsilon,
			Delta: p.Delta})
		if err != nil || together.Epsilon != plan.Plan.Epsilon || plan.Plan.Epsilon > p.Epsilon ||
			plan.Plan.Epsilon < 0.95*p.Epsilon || !(most < plan.Plan.Epsilon) {
			t.Errorf("%+v: the plan says epsilon %v, all rounds cost %v, one phase %v at most: %v", c, plan.Plan.Epsilon,
				together.Epsilon, most, err)
		}
		if planned := plan.Stints(); len(planned) != 1 || len(planned[0]) != c.phases {
			t.Errorf("%+v: %d stints", c, len(planned))
		} else if g, err := accounting.RepeatedWithin(1, planned,
			accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta}); err != nil || g != together {
			t.Errorf("%+v: planned releases cost %+v, those of the wire %+v: %v", c, g, together, err)
		}
		how := manifest.Practical(plan.Plan)
		if !how.Even || !how.Interactive || how.Users != c.users || how.Radius != c.radius {
			t.Errorf("%+v: %+v", c, how)
		}
		// The noise of one coordinate of a round's mean, if it were the only one, follows from Unit.
		of := plan.Forecasts[c.phases-1].Privacy
		got, want := math.Hypot(of.NoiseStd, of.RoundingStd)*float64(c.users)/math.Sqrt(float64(c.rounds)),
			plan.Plan.Practical.Unit
		if c.radius > 0 {
			got *= c.radius
		}
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("%+v: a round's noise is that of unit %v, want %v", c, got, want)
		}
		if _, err := learner.New(plan.Plan); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if err := manifest.CheckTask(&wire.Task{Plan: plan.Plan}); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p := inPractice("logistic", 2000)
	p.ByUser, p.Interactive, p.Cohort = true, true, 100
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "cohort: 100") {
		t.Errorf("people who answer all rounds come in cohorts: %v", err)
	}
	p = inPractice("logistic", 32000)
	p.Trust, p.Silos, p.Interactive, p.MaxRounds = accounting.Local, planning.Silos{Count: 20, Units: 1600, Reports: 12,
		Least: 1600}, true, 1
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "rounds: 1") {
		t.Errorf("one round of 12 of 20 silos would take all: %v", err)
	}
	p.Practical, p.Algorithm = nil, "pgd"
	if plan, err := planning.MakePlan(p); err != nil || manifest.LastCohort(plan.Plan.Phases[0]) != 12 ||
		manifest.CheckTask(&wire.Task{Plan: plan.Plan}) != nil {
		t.Errorf("one step of pgd: %v, %v", plan.Plan, err)
	}
}

// TestPracticalPlanOfPeople: people whose mean gradient is cut to a radius have its noise in the unit that
// steps follow from; their moments are cut at their norm.
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
	if a, b := plan.Plan.Phases[0], whole.Plan.Phases[0]; a.Users != b.Users ||
		a.Mechanism.ClipNorm != b.Mechanism.ClipNorm {
		t.Errorf("moments %v, want %v", a, b)
	}
	if f := manifest.Gradients(plan.Plan); f.Mechanism.ClipNorm != 0.25 {
		t.Errorf("gradients are encoded at norm %v, want 0.25", f.Mechanism.ClipNorm)
	}
	if how := manifest.Practical(plan.Plan); how.Radius != 0.25 || how.Even {
		t.Errorf("%+v", how)
	}
}
