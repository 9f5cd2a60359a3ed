package planning

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// opposed returns as many silos of one point each as there are points: nobody's rows are like another's.
func opposed() population {
	at := func(x, y, label float64) convex.Example { return convex.Example{Value: []float64{x, y}, Label: label} }
	return population{points: []convex.Example{at(1, 0, 1), at(1, 0, -1), at(0.6, 0.8, -1), at(0.6, 0.8, 1)},
		weights: []float64{0.25, 0.25, 0.25, 0.25}}
}

// TestSilosThatAreDrawnAreWithinTheBound: M of N silos are drawn for each round, with rows that are each like
// no other's: the risk over the population of all silos is within the bounds of pgd and, with a ridge, of apgd.
// Silos that are drawn once, for all rounds, are not: their differences do not average out, and the bounds see
// that.
func TestSilosThatAreDrawnAreWithinTheBound(t *testing.T) {
	const radius, units = 3.0, 1000
	p, missed := opposed(), 0
	for _, c := range []struct {
		method         string
		reports, steps uint64
		ridge          float64
	}{{schedule.PGD, 1, 1000, 0}, {schedule.PGD, 1, 100, 0}, {schedule.PGD, 2, 60, 0.02}, {schedule.APGD, 1, 60,
		0.05}, {schedule.APGD, 3, 60, 0.3}} {
		q := siloProblem(4, units, c.reports)
		q.Dim, q.Set.Radius, q.Ridge, q.Interactive = 2, radius, c.ridge, true
		d, err := newDraft(q, c.method, gaussian{k: 1, mu: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		s := search{p: q, t: d.t, objective: d.objective, source: d.source, users: q.Users, distance: d.distance,
			prior: d.trivial}
		set := d.objective.tune(d.t, s.situation(c.reports, units, c.steps, noise{}))
		out := Proposal{}
		d.conclude(&out, set.risk)
		best := p.optimum(radius, c.ridge)
		run := func(anew bool) (mean, margin float64) {
			return expected(t, 1+radius, func(r *rand.Rand) float64 {
				var a method.Method
				if d.t.Accelerated {
					a, err = method.NewPAGD(method.PAGDConfig{Dim: 2, Set: convex.Ball{R: radius}, Steps: c.steps, V: set.v,
						Mu: set.mu, Ridge: c.ridge, Interactive: true})
				} else {
					a, err = method.NewPSGD(method.PSGDConfig{Dim: 2, Set: convex.Ball{R: radius}, Steps: c.steps,
						StepSize: set.stepSize, Mu: set.mu, Ridge: c.ridge})
				}
				if err != nil {
					t.Fatal(err)
				}
				var come []convex.Example
				for !a.Done() {
					if anew || come == nil {
						come = nil
						for _, i := range r.Perm(4)[:c.reports] {
							come = append(come, p.points[i])
						}
					}
					if err := a.Step(method.Estimate{Gradient: meanOf(come, a.Query().Point, 0, nil), Users: c.reports}); err != nil {
						t.Fatal(err)
					}
				}
				return p.risk(a.Model(), c.ridge) - best
			})
		}
		mean, margin := run(true)
		once, _ := run(false)
		t.Logf("%+v: mean excess risk %.4f, margin %.4f, bound %.4f; drawn once %.4f", c, mean, margin, out.ExcessRisk, once)
		if mean > out.ExcessRisk+margin {
			t.Errorf("%+v: mean excess risk %v above the bound %v", c, mean, out.ExcessRisk)
		}
		if once > out.ExcessRisk+margin {
			missed++
		}
	}
	if missed == 0 {
		t.Error("silos that are drawn once are within all bounds: the cases test nothing about it")
	}
}

// TestHeterogeneity: the variance of M silos of N, without replacement.
func TestHeterogeneity(t *testing.T) {
	s := Silos{Count: 10, Units: 5, Reports: 4, Spread: 0.25}
	if v := s.heterogeneity(1); math.Abs(v-6./9*0.0625/4) > 1e-15 {
		t.Errorf("variance %v", v)
	}
	if s.Spread = 0; math.Abs(s.heterogeneity(2)-6./9) > 1e-15 {
		t.Errorf("variance %v of gradients of norm 2", s.heterogeneity(2))
	}
	s.Reports = 10
	for _, all := range []Silos{s, {Count: 1, Units: 9, Reports: 1, Spread: 3}} {
		if v := all.heterogeneity(2); v != 0 {
			t.Errorf("%+v: silos differ by %v where all report", all, v)
		}
	}
	// Bounds fall with the spread. Where it is zero they equal the bounds for silos whose rows are alike.
	for _, name := range []string{schedule.PGD, schedule.APGD} {
		risk := func(reports uint64, spread float64) float64 {
			p := siloProblem(20, 1600, reports)
			p.Silos.Spread, p.Interactive, p.Ridge, p.Algorithm = spread, true, 0.5, name
			d, err := newDraft(p, name, gaussian{k: 1, mu: 0.3, local: true})
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.plan()
			if err != nil {
				t.Fatal(err)
			}
			return out.ExcessRisk
		}
		if a, b, c, all := risk(10, 0), risk(10, 0.1), risk(10, 1e-9), risk(20, 0); !(a > b && b > c && c > all &&
			math.Abs(risk(10, 5)-a) < 1e-12) {
			t.Errorf("%s: spread 1, 0.1, 0: %v, %v, %v; all silos %v", name, a, b, c, all)
		}
	}
}

// TestSilosAnswerAHundredRounds: silos who answer all rounds have at most 100, unless the problem sets a limit,
// however many would minimise the bound of a method. Without a named method they have one of many passes: apgd where
// the loss is smooth, apgd-envelope where it is not.
func TestSilosAnswerAHundredRounds(t *testing.T) {
	p := siloProblem(20, 1<<14, 20)
	p.Interactive, p.Trust = true, accounting.Local
	for _, name := range []string{schedule.PGD, schedule.APGD} {
		for limit, want := range map[uint64]uint64{0: defaultMaxPasses, 40: 40, 3000: 3000} {
			p.MaxRounds, p.Ridge = limit, 0
			d, err := newDraft(p, name, gaussian{k: 1, mu: 0.3, local: true})
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.plan()
			if err != nil {
				t.Fatal(err)
			}
			if rounds := out.Plan.Phases[0].Rounds; rounds > want || limit > 100 && rounds <= 2*defaultMaxPasses &&
				name == schedule.PGD {
				t.Errorf("%s, at most %d: %d rounds", name, limit, rounds)
			}
		}
	}
	p.MaxRounds, p.Algorithm = 0, ""
	for _, c := range []struct {
		loss convex.Loss
		want string
	}{{convex.Logistic{}, schedule.APGD}, {convex.Hinge{}, schedule.APGDEnvelope}} {
		out, err := MakePlan(p.ForLoss(c.loss, 1, -1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if out.Plan.Algorithm != c.want || manifest.Planned(out.Plan) > defaultMaxPasses || !out.OnRecords {
			t.Errorf("%s: %s in %d rounds; %s", c.loss.Name(), out.Plan.Algorithm, manifest.Planned(out.Plan), out.Why)
		}
	}
}
