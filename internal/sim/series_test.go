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
		Problem:   smooth(), Methods: []string{learner.MethodPSGD, learner.MethodPAGD}, Users: []uint64{2500, 20000}, Repeats: 4})
	if err != nil {
		t.Fatal(err)
	}
	within(t, points)
	for i, few := range points[0].Risks {
		if many := points[1].Risks[i]; many.Mean >= few.Mean {
			t.Errorf("%s: eight times the users did not help", few.Method)
		}
	}
	psgd := []string{learner.MethodPSGD}
	for _, c := range []sim.SeriesConfig{{Repeats: 1, Methods: psgd}, {Repeats: 2, Methods: psgd}, {Repeats: 2}} {
		if _, err := sim.Series(context.Background(), c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}

// within checks that every mean is positive and at most its bound, and reports how far below.
func within(t *testing.T, points []sim.Point) {
	t.Helper()
	for _, p := range points {
		for _, r := range p.Risks {
			t.Logf("%7d users, %-22s %4d rounds in %d phases: excess risk %.5f (%.5f), %.5f without noise, bound %.5f, %.1f times as large",
				p.Users, r.Method, r.Rounds, r.Phases, r.Mean, r.StdErr, r.NonPrivate, r.Bound, r.Bound/r.Mean)
			if !(r.Mean > 0 && r.Mean <= r.Bound && r.NonPrivate > 0) {
				t.Errorf("%d users, %s: excess risk %v, want in (0, %v]", p.Users, r.Method, r.Mean, r.Bound)
			}
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
