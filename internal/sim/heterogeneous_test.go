package sim_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Theorems 3.1 and 4.1 of Lowy, Razaviyayn, ICLR 2023, on silos each of which has a slice of what can be learned of
// the first feature, and which trust nobody: the mean excess risk is within the plan's bound, over the population,
// or for apgd without a ridge over the records at hand. Seeds are fixed. Every bound is below the risk of the
// start: one that says nothing would hold of anything.
func TestTheorems3And4_SilosThatDiffer(t *testing.T) {
	const silos, units, repeats = 40, 500, 2
	for _, c := range []struct {
		name, method string
		reports      uint64
		ridge        float64
		interactive  bool
	}{
		{"one pass", schedule.PAGD, silos, 0, false},
		{"one pass, half of the silos", schedule.PAGD, silos / 2, 0, false},
		{"one pass, half of the silos, ridge, restarts", schedule.PAGDRestarts, silos / 2, 0.5, false},
		{"many passes", schedule.APGD, silos, 0, true},
		{"many passes, three quarters of the silos", schedule.APGD, 3 * silos / 4, 0, true},
		{"many passes, ridge", schedule.APGDRestarts, silos, 0.5, true},
		{"many passes, three quarters of the silos, ridge", schedule.APGD, 3 * silos / 4, 0.5, true},
	} {
		s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 3, Loss: "logistic", TruthNorm: 2, Ridge: c.ridge, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		p := planning.Problem{Users: silos * units, Dim: 3, ClipNorm: math.Sqrt(3), Set: convex.SetDeclaration{Radius: 3},
			Ridge: c.ridge, Epsilon: 16, Delta: 1e-6,
			Trust: accounting.Local, HonestFraction: accounting.One, Algorithm: c.method,
			Rounds: planning.Rounds{Interactive: c.interactive, MaxRounds: 60, Minimum: c.reports / 2},
			Silos:  planning.Silos{Count: silos, Units: units, Reports: c.reports, Least: units}}.ForLoss(s.Loss(),
			s.FeatureBound(), s.LabelBound())
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Vacuous {
			t.Errorf("%s: the bound is %v, which says nothing: the start's is %v", c.name, plan.ExcessRisk, plan.TrivialRisk)
		}
		all := s.Take(repeats * silos * units)
		var risk float64
		for k := range repeats {
			rows := all[k*silos*units : (k+1)*silos*units]
			slices.SortFunc(rows, func(a, b convex.Example) int { return cmp.Compare(a.Label*a.Value[0], b.Label*b.Value[0]) })
			var of [][]convex.Example
			for i := range silos {
				of = append(of, rows[i*units:(i+1)*units])
			}
			size := 0
			if !c.interactive {
				size = int(plan.Forecasts[0].Units)
			}
			blocks, owners, _ := sim.BlocksOf(of, size, uint64(k), block.Of)
			came := map[int]int{}
			out, err := sim.Run(context.Background(), sim.Config{Plan: plan.Plan, Loss: s.Loss(), Blocks: blocks, Silos: owners,
				Seed: uint64(k), OnRound: func(r sim.Round) {
					for _, i := range r.Cohort {
						came[owners[i]]++
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			if len(came) != silos {
				t.Errorf("%s: %d silos came", c.name, len(came))
			}
			if each := float64(manifest.Planned(plan.Plan)) * float64(c.reports) / silos; c.interactive {
				for i, n := range came { // M/N of the rounds, within five standard deviations
					if math.Abs(float64(n)-each) > 5*math.Sqrt(each*(1-float64(c.reports)/silos)) {
						t.Errorf("%s: silo %d was in %d rounds, expected are %v", c.name, i, n, each)
					}
				}
			}
			if !plan.OnRecords {
				risk += s.ExcessRisk(out.Model) / repeats
				continue
			}
			risk += (objective(s.Loss(), out.Model, rows) - least(s.Loss(), rows, 3, 3)) / repeats
		}
		t.Logf("%s: %d rounds in %d phases, mean excess risk %.5f, bound %.5f", c.name, manifest.Planned(plan.Plan),
			len(plan.Plan.Phases), risk, plan.ExcessRisk)
		if !(risk > 0 && risk <= plan.ExcessRisk) {
			t.Errorf("%s: excess risk %v, want in (0, %v]", c.name, risk, plan.ExcessRisk)
		}
	}
}

func objective(loss convex.Loss, theta []float64, rows []convex.Example) (sum float64) {
	for _, e := range rows {
		sum += loss.Value(theta, e) / float64(len(rows))
	}
	return sum
}

// least returns the least mean loss of rows in the ball of a radius, by accelerated descent from the origin.
func least(loss convex.Loss, rows []convex.Example, dim int, radius float64) float64 {
	theta, last, at, one := make([]float64, dim), make([]float64, dim), make([]float64, dim), make([]float64, dim)
	for k := range 120 {
		g := make([]float64, dim)
		for j := range at {
			at[j] = theta[j] + float64(k)/float64(k+3)*(theta[j]-last[j])
		}
		for _, e := range rows {
			loss.Gradient(one, at, e)
			for j, v := range one {
				g[j] += v / float64(len(rows))
			}
		}
		copy(last, theta)
		for j := range theta {
			theta[j] = at[j] - g[j]/0.75
		}
		convex.Clip(theta, radius)
	}
	return objective(loss, theta, rows)
}
