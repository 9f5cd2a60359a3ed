package sim_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// smooth returns a logistic problem in which nothing is clipped, so the bounds are the loss's own.
func smooth() planning.Problem {
	return planning.Problem{ClipNorm: math.Sqrt(5), Set: convex.SetDeclaration{Radius: 4}, Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One}
}

func TestSeriesRefuses(t *testing.T) {
	psgd := []string{schedule.PSGD}
	good := sim.SeriesConfig{Synthetic: sim.SyntheticConfig{Dim: 2, Loss: "logistic", TruthNorm: 1}, Problem: smooth(),
		Methods: psgd,
		Users:   []uint64{100}, Repeats: 2}
	if _, err := sim.Series(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sim.SeriesConfig){
		"repeats": func(c *sim.SeriesConfig) { c.Repeats = 1 }, "methods": func(c *sim.SeriesConfig) { c.Methods = nil },
		"dim":  func(c *sim.SeriesConfig) { c.Synthetic.Dim = 0 },
		"psdg": func(c *sim.SeriesConfig) { c.Methods = []string{"psdg"} },
	} {
		c := good
		change(&c)
		if _, err := sim.Series(context.Background(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

// A line in the logarithms is fitted exactly.
func TestSlopes(t *testing.T) {
	var points []sim.Point
	for _, n := range []uint64{10, 100, 1000} {
		points = append(points, sim.Point{Users: n, Risks: []sim.Risk{
			{Method: schedule.PSGD, Mean: 3 / math.Sqrt(float64(n))}, {Method: schedule.PGD, Mean: 7 / float64(n)}}})
	}
	got := sim.Slopes(points, false)
	if len(got) != 2 || math.Abs(got[0].Fitted+0.5) > 1e-12 || math.Abs(got[1].Fitted+1) > 1e-12 ||
		got[0].Method != schedule.PSGD {
		t.Errorf("%+v, want slopes -1/2 and -1", got)
	}
	for _, m := range schedule.Names() {
		one := sim.Slopes([]sim.Point{{Users: 10, Risks: []sim.Risk{{Method: m, Mean: 1}}}}, false)[0]
		if one.Fitted != 0 || !(one.Privacy < 0) || !(one.Sampling < 0) && m != schedule.APGD && m != schedule.APGDEnvelope {
			// whose theorem is about the users at hand
			t.Errorf("%s: %+v, want no fit of one point and the theorem's exponents", m, one)
		}
	}
	// Theorem 2.1.2 of Lowy and Razaviyayn: L^2/(mu N n) + d L^2 log/(mu eps^2 n^2 N)
	if strong := sim.Slopes(points, true)[1]; strong.Privacy != -2 || strong.Sampling != -1 {
		t.Errorf("pgd with a ridge: %+v, want exponents -2 and -1", strong)
	}
	if sim.Slopes(nil, false) != nil {
		t.Error("slopes of no points")
	}
}

// within checks that every mean is positive and at most its bound, and reports how far below.
func within(t *testing.T, points []sim.Point) {
	t.Helper()
	for _, p := range points {
		for _, r := range p.Risks {
			t.Logf(
				"%7d users, %-22s %4d rounds in %d phases: excess risk %.5f (%.5f), %.5f without noise, bound %.5f, %.1f times as large",
				p.Users, r.Method, r.Rounds, r.Phases, r.Mean, r.StdErr, r.NonPrivate, r.Bound, r.Bound/r.Mean)
			if !(r.Mean > 0 && r.Mean <= r.Bound && r.NonPrivate > 0) {
				t.Errorf("%d users, %s: excess risk %v, want in (0, %v]", p.Users, r.Method, r.Mean, r.Bound)
			}
		}
	}
}

// On a smooth loss acceleration wins at equal users and privacy: PSGD wins at most 7 of 60 independent pairs of
// runs, which has probability below 5e-10 if it were as likely to win.
func TestTheorem43_PAGDBeatsPSGD(t *testing.T) {
	const runs, users, most = 60, 10000, 7
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 3, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	all := s.Take(runs * users)
	plan := func(method string) *wire.Plan {
		p := smooth().ForLoss(s.Loss(), s.FeatureBound(), s.LabelBound())
		p.Users, p.Dim, p.Algorithm = users, 5, method
		out, err := planning.MakePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return out.Plan
	}
	accelerated, plain := plan(schedule.PAGD), plan(schedule.PSGD)
	risk := func(plan *wire.Plan, run int) float64 {
		r, err := sim.Run(context.Background(), sim.Config{Plan: plan, Loss: s.Loss(),
			Examples: all[run*users : (run+1)*users], Seed: uint64(run)})
		if err != nil {
			t.Fatal(err)
		}
		return s.ExcessRisk(r.Model)
	}
	var mean [2]float64
	var lost int
	for run := range runs {
		pagd, psgd := risk(accelerated, run), risk(plain, run)
		mean[0], mean[1] = mean[0]+pagd/runs, mean[1]+psgd/runs
		if pagd >= psgd {
			lost++
		}
	}
	if lost > most {
		t.Errorf("PSGD won %d of %d runs, want at most %d", lost, runs, most)
	}
	t.Logf("PSGD won %d; seeds 0 to %d: mean excess risk %.4f of PAGD, %.4f of PSGD", lost, runs-1, mean[0], mean[1])
}
