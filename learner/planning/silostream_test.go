package planning_test

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestStreamOfSilos: silos have a plan without end under every trust: a look and rounds of all of a round's
// silos, with blocks of one size and the mechanism of a plan that ends with blocks of that size, within the
// budget; every round has the plan's number of silos.
func TestStreamOfSilos(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan, accounting.Local} {
		p := inPractice("logistic", 40_000)
		p.Trust, p.Continuous, p.Practical.Continuous = trust, schedule.Adaptive, true
		p.Silos = planning.Silos{Count: 10, Units: 4000, Reports: 8, Least: 4000}
		out, err := planning.MakePlan(p)
		if err != nil {
			t.Fatalf("%v: %v", trust, err)
		}
		f := out.Plan.Phases
		if len(f) != 2 || f[1].Top != 8 || f[1].Cohort != 8 || f[1].Minimum != 8 || f[0].Cohort != 8 ||
			f[0].Mechanism.Units != f[1].Mechanism.Units || f[1].Mechanism.Units < 2 {
			t.Fatalf("%v: phases %v", trust, f)
		}
		for i, of := range out.Forecasts {
			r := of.Privacy.Release()
			if of.Privacy.ProvedEpsilon == nil || *of.Privacy.ProvedEpsilon > p.Epsilon || r.Users != 8 ||
				max(1, r.Units) != f[i].Mechanism.Units {
				t.Errorf("%v: phase %d is charged as %+v", trust, i+1, r)
			}
		}
		a, err := learner.New(out.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if l := learner.LayoutOf(out.Plan); l.Base != 8 || l.Top != 8 || l.Units != f[1].Mechanism.Units || a.Done() {
			t.Errorf("%v: layout %+v", trust, l)
		}
		if at, _ := manifest.PhaseOf(out.Plan, 1000); at.Cohort != 8 || at.Planned != 8 {
			t.Errorf("%v: round 1,000 is of %d of %d silos", trust, at.Cohort, at.Planned)
		}
	}
	p := inPractice("logistic", 40)
	p.Continuous, p.Practical.Continuous = schedule.Adaptive, true
	p.Silos = planning.Silos{Count: 10, Units: 4, Reports: 10, Least: 4}
	if _, err := planning.MakePlan(p); err == nil || !strings.Contains(err.Error(), "too few for a task without an end") {
		t.Errorf("silos of four rows: %v", err)
	}
}
