package planning

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// A proxRun runs method.Prox for a bound whose rounds are answered by a function of the announced point, with
// Gaussian noise of the bound's size.
func proxRun(t *testing.T, b proxBound, weight float64, set convex.Set, start []float64, r *rand.Rand,
	answer func(round int, c []float64) []float64) []float64 {
	t.Helper()
	a, err := method.NewProx(method.ProxConfig{Dim: len(start), Set: set, Start: start, Steps: b.rounds,
		Average: b.average})
	if err != nil {
		t.Fatal(err)
	}
	sd := math.Sqrt(b.noise/float64(len(start))) / weight
	for round := 0; !a.Done(); round++ {
		c := a.Query().Point
		x := answer(round, c)
		for j := range x {
			x[j] -= c[j]
			if sd > 0 {
				x[j] += sd * r.NormFloat64()
			}
		}
		if err := a.Step(method.Estimate{Gradient: x, Users: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return a.Model()
}

// descended returns the point that k steps of a silo's gradient descent from c reach.
func descended(b proxBound, weight float64, set convex.Set, c []float64, gradient func(dst, x []float64)) []float64 {
	x, g, eta := append([]float64(nil), c...), make([]float64, len(c)), 1/(b.beta+weight)
	k := b.steps
	if k == 0 {
		k = ProxSteps(weight, b.beta)
	}
	for range k {
		gradient(g, x)
		for j := range x {
			x[j] -= eta * (g[j] + weight*(x[j]-c[j]))
		}
		set.Project(x, x)
	}
	return x
}

// within checks that happens is at most the bound, and within a tenth of it.
func within(t *testing.T, what string, happens, bound float64) {
	t.Helper()
	if !(happens <= bound*(1+1e-9)) || happens < 0.9*bound {
		t.Errorf("%s: %v happens, and the bound is %v: want it within a tenth", what, happens, bound)
	}
}

// TestConstantsOfProxAreTight: no constant of the bound can be half as large: of the distance, where a loss is
// a line that the rounds just come down, of whole answers and of ones of few steps, which are as those of a
// larger weight; of the model's noise, where the loss is a cone with its tip at the start; of silos that
// differ, where one is held at its kink and the other pulls.
func TestConstantsOfProxAreTight(t *testing.T) {
	const weight, distance, exactly = 0.5, 3.0, 1 << 40
	for _, steps := range []uint64{0, 1, 4} {
		b := proxBound{rounds: 20, average: 20, reports: 1, units: 1e12, distance: distance, loss: 1, beta: 2, steps: steps,
			again: true}
		worst, box := 0.0, convex.Box{Dim: 1, Max: distance}
		for slope := 0.005; slope < 1; slope *= 1.02 {
			x := proxRun(t, b, weight, box, []float64{distance}, nil, func(_ int, c []float64) []float64 {
				return descended(b, weight, box, c, func(g, _ []float64) { g[0] = slope })
			})
			worst = max(worst, slope*x[0])
		}
		within(t, "a line", worst, b.risk(weight))
	}
	cone := proxBound{rounds: 12, average: method.ProxAverage(12), reports: 1, units: 1e12, loss: 1, beta: 2,
		steps: exactly, again: true, noise: 0.0001}
	var risk float64
	const dim, runs = 200, 50
	for seed := range uint64(runs) {
		x := proxRun(t, cone, weight, convex.Ball{R: 10}, make([]float64, dim), rand.New(rand.NewPCG(seed, 1)),
			func(_ int, c []float64) []float64 {
				return make([]float64, len(c)) // the tip, from within 1/lambda
			})
		risk += convex.Norm(x) / runs
	}
	within(t, "a cone", risk, cone.risk(weight))
	const pull, hold = 0.25, 0.75
	apart := proxBound{rounds: 60, average: 60, reports: 2, units: 1e12, loss: hold, beta: 2, steps: exactly, again: true,
		spread: (hold + pull) / 2}
	x := proxRun(t, apart, weight, convex.Ball{R: 10}, []float64{0}, nil, func(_ int, c []float64) []float64 {
		held := math.Copysign(max(0, math.Abs(c[0])-hold/weight), c[0])
		return []float64{(held + c[0] + pull/weight) / 2}
	})
	within(t, "silos apart", (hold*math.Abs(x[0])-pull*x[0])/2, apart.risk(weight))
}

// TestExcessRiskOfProxIsWithinTheBound: the risk on the population is within the bound, however few rows the
// silos have: with the same ones in every round and with new ones, of one silo and of three, with much noise
// and with little. What a silo has learned by heart shows where the terms of generalisation are left out.
func TestExcessRiskOfProxIsWithinTheBound(t *testing.T) {
	const radius = 3.0
	p, ball := contradictory(), convex.Ball{R: radius}
	best := p.optimum(radius, 0)
	byHeart := 0
	for _, c := range []struct {
		rounds, reports, units int
		weight, noise          float64
		steps                  uint64
		again                  bool
		spread                 float64
	}{{6, 1, 1, 0.01, 0, 0, true, 0}, {6, 1, 1, 0.01, 0, 0, false, 0}, {12, 1, 100, 0.2, 0.001, 0, true, 0}, {12, 3, 30,
		0.3, 0.002, 3, true, 1},
		{12, 3, 100, 0.3, 0.02, 0, false, 0}, {4, 3, 30, 1, 0.05, 1, false, 1}} {
		b := proxBound{rounds: uint64(c.rounds), average: method.ProxAverage(uint64(c.rounds)), reports: uint64(c.reports),
			units: uint64(c.units), distance: radius, loss: 1, beta: 0.25,
			steps: c.steps, again: c.again, spread: c.spread, noise: c.noise}
		mean, margin := expected(t, 1+radius, func(r *rand.Rand) float64 {
			var silos []population
			x := proxRun(t, b, c.weight, ball, []float64{0, 0}, r, func(round int, at []float64) []float64 {
				if round == 0 || !c.again {
					silos = silos[:0]
					for range c.reports {
						_, of := p.sample(c.units, r)
						silos = append(silos, of)
					}
				}
				sum, one := make([]float64, 2), make([]float64, 2)
				for _, of := range silos {
					y := descended(b, c.weight, ball, at, func(g, x []float64) {
						clear(g)
						for i, w := range of.weights {
							convex.Logistic{}.Gradient(one, x, p.points[i])
							g[0], g[1] = g[0]+w*one[0], g[1]+w*one[1]
						}
					})
					sum[0], sum[1] = sum[0]+y[0]/float64(c.reports), sum[1]+y[1]/float64(c.reports)
				}
				return sum
			})
			return p.risk(x, 0) - best
		})
		bound := b.risk(c.weight)
		t.Logf("%+v: %.4f +- %.4f, bound %.4f", c, mean, margin, bound)
		if mean-margin > bound {
			t.Errorf("%+v: risk %v, more than the bound %v", c, mean, bound)
		}
		b.units = 1e12
		if mean-margin > b.risk(c.weight) {
			byHeart++
		}
	}
	if byHeart == 0 {
		t.Error("no case needs the terms of generalisation: they are not tested")
	}
}
