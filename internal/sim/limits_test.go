package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Cases of Lowy, Razaviyayn, ICLR 2023, that can be computed by hand, and limits in which its algorithms are others.

// runSilos runs a plan on silos, each of whose rows are one block.
func runSilos(t *testing.T, plan *wire.Plan, loss convex.Loss, silos [][]convex.Example, change func(*Config)) Result {
	t.Helper()
	c := Config{Plan: plan, Loss: loss, Seed: 7}
	for i, rows := range silos {
		c.Blocks, c.Silos = append(c.Blocks, block.Of(rows...)), append(c.Silos, i)
	}
	change(&c)
	out, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func exactly(c *Config) { c.Exact = true }

// values returns rows of a model of one number, whose loss at w is (w - y)^2/2.
func values(ys ...float64) (out []convex.Example) {
	for _, y := range ys {
		out = append(out, convex.Example{Value: []float64{1}, Label: y})
	}
	return out
}

func passes(steps, silos uint64, descent *wire.Descent) *wire.Plan {
	return &wire.Plan{Algorithm: schedule.PGD, ClipNorm: 100, Silos: silos,
		Set: manifest.WireSet(convex.SetDeclaration{Kind: "ball", Radius: 100}),
		Phases: []*wire.Phase{{Rounds: steps, Cohort: silos, Users: silos, Minimum: silos, RoundsPerUser: uint32(steps),
			Mechanism: &wire.Mechanism{Dim: 1},
			Constants: &wire.Phase_Descent{Descent: descent}}}}
}

// Algorithm 2 on two silos, {0, 2} and {4, 6}, all rows in every round, no noise, eta = 1/2: w = 0, 1.5, 2.25, and
// the model is their mean.
func TestAlgorithm2Trace(t *testing.T) {
	var asked []float64
	out := runSilos(t, passes(3, 2, &wire.Descent{StepSize: 0.5}), convex.Squared{}, [][]convex.Example{values(0, 2),
		values(4, 6)}, func(c *Config) {
		c.Exact, c.OnRound = true, func(r Round) { asked = append(asked, r.Point[0]) }
	})
	if !slices.Equal(asked, []float64{0, 1.5, 2.25}) || out.Model[0] != 1.25 {
		t.Errorf("asked at %v, model %v; want 0, 1.5, 2.25 and 1.25", asked, out.Model)
	}
}

// One silo is descent on one machine: the same points as a loop over its rows, bit for bit, with the same noise.
func TestOneSiloIsOneMachine(t *testing.T) {
	rows := values(0.5, -1, 3, 0.25)
	for _, sd := range []float64{0, 0.3} {
		var asked []float64
		runSilos(t, passes(20, 1, &wire.Descent{StepSize: 0.25}), convex.Squared{}, [][]convex.Example{rows},
			func(c *Config) {
				c.NoiseStd, c.OnRound = func(int, uint64) float64 { return sd }, func(r Round) { asked = append(asked, r.Point[0]) }
			})
		w := 0.0
		for step, at := range asked {
			if at != w {
				t.Fatalf("noise %v, step %d: asked at %v, one machine is at %v", sd, step+1, at, w)
			}
			var g float64
			for _, x := range rows {
				g += w - x.Label
			}
			w -= 0.25 * (g/4 + sd*rand.New(Entropy(7, "gaussian", uint64(step)+1)).NormFloat64())
		}
	}
}

// No noise is as if none were drawn, bit for bit; epsilon without end comes to it, and takes reports through the
// randomizer.
func TestEndlessEpsilonIsNoNoise(t *testing.T) {
	s, err := NewSynthetic(SyntheticConfig{Dim: 10, Loss: "logistic", TruthNorm: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	var silos [][]convex.Example
	for range 8 {
		silos = append(silos, s.Take(60))
	}
	for _, method := range []string{schedule.PGD, schedule.APGD} {
		plan := siloPlan(t, s, func(p *planning.Problem) { p.Algorithm = method })
		noiseless := runSilos(t, plan, s.Loss(), silos, exactly)
		none := runSilos(t, plan, s.Loss(), silos, func(c *Config) { c.NoiseStd = func(int, uint64) float64 { return 0 } })
		if !slices.Equal(none.State, noiseless.State) {
			t.Errorf("%s: a standard deviation of 0 is not no noise", method)
		}
		last := math.Inf(1)
		for _, epsilon := range []float64{1, 7, 49} {
			rich := siloPlan(t, s, func(p *planning.Problem) { p.Algorithm, p.Epsilon = method, epsilon })
			rich.Phases[0].Constants = plan.Phases[0].Constants // of the same method
			out := runSilos(t, rich, s.Loss(), silos, func(*Config) {})
			for j := range out.Model {
				out.Model[j] -= noiseless.Model[j]
			}
			apart := convex.Norm(out.Model)
			t.Logf("%s, epsilon %v: %v from the model without noise", method, epsilon, apart)
			if !(apart < last/3) {
				t.Errorf("%s, epsilon %v: %v from the model without noise, %v with a seventh", method, epsilon, apart, last)
			}
			last = apart
		}
	}
}

// Silos of equal units and budgets add the noise that is planned, so Algorithm 7 is Algorithm 2, bit for bit; those
// who are all there are as good as blocks of nobody in particular.
func TestEqualSilosHaveThePlansNoise(t *testing.T) {
	s, err := NewSynthetic(SyntheticConfig{Dim: 10, Loss: "logistic", TruthNorm: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	plan := siloPlan(t, s, nil)
	at := manifest.Costliest(plan, 0)
	of, budget, err := at.OwnBudget()
	if err != nil {
		t.Fatal(err)
	}
	own, err := accounting.OwnTrials(of, 60, budget)
	if err != nil || own[0] != uint64(plan.Phases[0].Mechanism.Trials) {
		t.Errorf("a silo as planned finds %v trials, planned %d: %v", own, plan.Phases[0].Mechanism.Trials, err)
	}
	var silos [][]convex.Example
	for range 8 {
		silos = append(silos, s.Take(60))
	}
	alg7 := runSilos(t, plan, s.Loss(), silos, func(*Config) {})
	alg2 := runSilos(t, plan, s.Loss(), silos, func(c *Config) { c.Silos = nil })
	if !slices.Equal(alg7.State, alg2.State) {
		t.Error("silos of equal sizes run as others than blocks of the plan's")
	}
}

// Silos of one unit each can report once, about that one: one round of everybody, as users under trust local.
func TestSilosOfOneUnit(t *testing.T) {
	p := planning.Problem{Users: 500, Dim: 10, ClipNorm: 2, Set: convex.SetDeclaration{Radius: 3}, Epsilon: 4, Delta: 1e-6,
		Algorithm: schedule.PAGD,
		Trust:     accounting.Local, HonestFraction: accounting.One, Silos: planning.Silos{Count: 500, Units: 1, Reports: 500,
			Least: 1}}.ForLoss(convex.Logistic{}, 1, -1, 1)
	silos, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Silos, p.Cohort = planning.Silos{}, 500
	users, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	f, g := silos.Plan.Phases[0], users.Plan.Phases[0]
	if f.Rounds != 1 || f.Mechanism.GetUnits() > 1 || f.Mechanism.Trials != g.Mechanism.Trials ||
		f.Mechanism.Levels != g.Mechanism.Levels || silos.ExcessRisk != users.ExcessRisk {
		t.Errorf("silos of one unit: %v, bound %v; users: %v, %v", f, silos.ExcessRisk, g, users.ExcessRisk)
	}
}
