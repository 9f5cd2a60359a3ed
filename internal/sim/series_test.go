package sim_test

import (
	"context"
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// smooth is a logistic problem in which nothing is clipped, so the bounds are the loss's own.
func smooth() learner.Problem {
	return learner.Problem{ClipNorm: math.Sqrt(5), Set: convex.SetDeclaration{Radius: 4}, Epsilon: 1, Delta: 1e-6, HonestFraction: accounting.One}
}

// Theorems 4.1 and 4.3 of the ICLR 2022 paper: at every number of users both methods stay within their bounds, and more
// users help. Means of a few runs against bounds several times as large; measured are risks of a tenth of the bound.
func TestTheorems41And43_RiskAgainstUsers(t *testing.T) {
	points, err := sim.Series(context.Background(), sim.SeriesConfig{
		Synthetic: sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 3, Seed: 5},
		Problem:   smooth(), Users: []uint64{2500, 20000}, Repeats: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		t.Logf("%+v", p)
		for name, r := range map[string]sim.Risk{"psgd": p.PSGD, "pagd": p.PAGD} {
			if r.Mean > r.Bound || r.Mean <= 0 || r.NonPrivate <= 0 {
				t.Errorf("%d users, %s: excess risk %v, want in (0, %v]", p.Users, name, r.Mean, r.Bound)
			}
		}
	}
	few, many := points[0], points[1]
	if many.PSGD.Mean >= few.PSGD.Mean || many.PAGD.Mean >= few.PAGD.Mean {
		t.Error("eight times the users did not help")
	}
	for _, c := range []sim.SeriesConfig{{Repeats: 1}, {Repeats: 2}} {
		if _, err := sim.Series(context.Background(), c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}

// On a smooth loss acceleration wins at equal users and privacy: in every one of 30 independent pairs of runs, which has
// probability 2^-30 < 1e-9 if PSGD were as likely to win.
func TestTheorem43_PAGDBeatsPSGD(t *testing.T) {
	const runs, users = 30, 10000
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 3, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	all := s.Take(runs * users)
	plan := func(method string) learner.Plan {
		p := smooth().ForLoss(s.Loss(), s.FeatureBound(), s.LabelBound())
		p.Users, p.Dim, p.Algorithm = users, 5, method
		out, err := learner.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	accelerated, plain := plan(learner.MethodPAGD), plan(learner.MethodPSGD)
	risk := func(plan learner.Plan, run int) float64 {
		r, err := sim.Run(context.Background(), sim.Config{Plan: plan, Loss: s.Loss(), Examples: all[run*users : (run+1)*users], Seed: uint64(run)})
		if err != nil {
			t.Fatal(err)
		}
		return s.ExcessRisk(r.Model)
	}
	var mean [2]float64
	for run := range runs {
		pagd, psgd := risk(accelerated, run), risk(plain, run)
		mean[0], mean[1] = mean[0]+pagd/runs, mean[1]+psgd/runs
		if pagd >= psgd {
			t.Errorf("run %d: excess risk %v of PAGD, %v of PSGD", run, pagd, psgd)
		}
	}
	t.Logf("seeds 0 to %d: mean excess risk %.4f of PAGD, %.4f of PSGD", runs-1, mean[0], mean[1])
}
