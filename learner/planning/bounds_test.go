package planning_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
)

// TestLemma42_BestStepSize: Cheu, Joseph, Mao, Peng, ICLR 2022, Lemma 4.2, worked by hand: D0 = 1, G = 2, T =
// 100.
func TestLemma42_BestStepSize(t *testing.T) {
	eta := planning.PSGDStepSize(1, 4, 100)
	if math.Abs(eta-0.05) > 1e-15 {
		t.Errorf("eta = %v, want 0.05", eta)
	}
	best := planning.PSGDBound(1, 4, eta, 100)
	if math.Abs(best-0.2) > 1e-15 {
		t.Errorf("bound %v, want 0.2", best)
	}
	for _, f := range []float64{0.5, 0.9, 1.1, 2} {
		if b := planning.PSGDBound(1, 4, f*eta, 100); b <= best {
			t.Errorf("bound %v at %v eta is below the best %v", b, f, best)
		}
	}
}

func TestPAGDCurvatureMinimisesTheBound(t *testing.T) {
	for _, variance := range []float64{0, 1e-4, 0.1, 30} {
		for _, steps := range []uint64{1, 2, 40} {
			v := planning.PAGDCurvature(3, 0.5, variance, steps)
			best := planning.PAGDBound(3, variance, v, 0.5, 0, steps)
			for _, f := range []float64{0.5, 0.9, 0.99, 1.01, 1.1, 2} {
				if f*v < 1 {
					continue // below 2 beta the bound does not hold
				}
				if b := planning.PAGDBound(3, variance, f*v, 0.5, 0, steps); b < best {
					t.Errorf("V = %v, %d steps: bound %v at %v v is below %v", variance, steps, b, f, best)
				}
			}
		}
	}
	// by hand: sqrt(2 30 2 3 4/3)/3 = 7.30296743, and 2 v 9/6 + 4 30 4/(3 v) = 21.9089023 + 21.9089023
	if v := planning.PAGDCurvature(3, 0.5, 30, 2); math.Abs(v-7.30296743) > 1e-8 ||
		math.Abs(planning.PAGDBound(3, 30, v, 0.5, 0, 2)-43.8178046) > 1e-6 {
		t.Errorf("v = %v, bound %v", v, planning.PAGDBound(3, 30, v, 0.5, 0, 2))
	}
}

// quadratic is F(theta) = sum_i h_i (theta_i - c_i)^2 / 2, with gradients that carry Gaussian noise.
type quadratic struct{ h, c []float64 }

func (q quadratic) risk(theta []float64) float64 {
	var s float64
	for i, x := range theta {
		s += q.h[i] * (x - q.c[i]) * (x - q.c[i]) / 2
	}
	return s
}

func (q quadratic) estimate(theta []float64, sd float64, r *rand.Rand) method.Estimate {
	g := make([]float64, len(theta))
	for i, x := range theta {
		g[i] = q.h[i] * (x - q.c[i])
		if sd > 0 {
			g[i] += sd * r.NormFloat64()
		}
	}
	return method.Estimate{Gradient: g, Users: 1, PrivacyVariance: sd * sd}
}

// meanRisk averages the excess risk over independent runs. The risk is in [0, worst], so by the empirical Bernstein
// inequality (Maurer & Pontil 2009, Theorem 4) the average exceeds its expectation by margin with probability at most
// 1e-9.
func meanRisk(t *testing.T, q quadratic, sd, worst float64, fresh func() (learner.Algorithm, error)) (mean,
	margin float64) {
	t.Helper()
	const seed, runs = 20220425, 2000
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d, %d runs, false-alarm rate 1e-9", seed, runs)
	var squares float64
	for range runs {
		a, err := fresh()
		if err != nil {
			t.Fatal(err)
		}
		for !a.Done() {
			if err := a.Step(q.estimate(a.Query().Point, sd, r)); err != nil {
				t.Fatal(err)
			}
		}
		risk := q.risk(a.Model())
		mean += risk / runs
		squares += risk * risk / runs
	}
	variance := max(0, squares-mean*mean) * runs / (runs - 1)
	log := math.Log(2 / 1e-9)
	return mean, math.Sqrt(2*variance*log/runs) + 7*worst*log/(3*(runs-1))
}

var hard = quadratic{h: []float64{1, 0.3, 0.05}, c: []float64{0.4, -0.5, 0.6}}

const (
	hardRadius = 1.0
	hardBeta   = 1.0
)

// hardWorst bounds the risk, and hardGradient its gradient, on the ball.
func hardWorst() float64 {
	d := hardRadius + convex.Norm(hard.c)
	return hardBeta * d * d / 2
}

func hardGradient() float64 { return hardBeta * (hardRadius + convex.Norm(hard.c)) }

// TestLemma42_ExcessRiskIsWithinTheBound: the bound is claimed for the expectation, so the average of many runs
// must respect it.
func TestLemma42_ExcessRiskIsWithinTheBound(t *testing.T) {
	const steps = 60
	for _, sd := range []float64{0, 0.5, 3} {
		second := hardGradient()*hardGradient() + 3*sd*sd
		eta := planning.PSGDStepSize(hardRadius, second, steps)
		bound := planning.PSGDBound(hardRadius, second, eta, steps)
		mean, margin := meanRisk(t, hard, sd, hardWorst(), func() (learner.Algorithm, error) {
			return method.NewPSGD(method.PSGDConfig{Dim: 3, Set: convex.Ball{R: hardRadius}, Steps: steps, StepSize: eta})
		})
		t.Logf("sd %v: mean excess risk %.4f, bound %.4f, margin %.4f", sd, mean, bound, margin)
		if mean > bound+margin {
			t.Errorf("sd %v: mean excess risk %v above the bound %v", sd, mean, bound)
		}
	}
}

func TestTheorem43_ExcessRiskIsWithinTheBound(t *testing.T) {
	const steps = 60
	for _, sd := range []float64{0, 0.5, 3} {
		variance := 3 * sd * sd
		for _, f := range []float64{1, 2} {
			v := f * planning.PAGDCurvature(hardRadius, hardBeta, variance, steps)
			bound := planning.PAGDBound(hardRadius, variance, v, hardBeta, 0, steps)
			mean, margin := meanRisk(t, hard, sd, hardWorst(), func() (learner.Algorithm, error) {
				return method.NewPAGD(method.PAGDConfig{Dim: 3, Set: convex.Ball{R: hardRadius}, Steps: steps, V: v})
			})
			t.Logf("sd %v, %v v: mean excess risk %.4f, bound %.4f, margin %.4f", sd, f, mean, bound, margin)
			if mean > bound+margin {
				t.Errorf("sd %v, %v v: mean excess risk %v above the bound %v", sd, f, mean, bound)
			}
		}
	}
}

// TestGhadimiLan2012_StronglyConvexWithinTheBound: Ghadimi & Lan 2012, Proposition 9: with mu > 0 and v = beta
// the expected excess risk is at most 2 beta D0^2/(T(T+1)) + 8 V/(mu (T+1)).
func TestGhadimiLan2012_StronglyConvexWithinTheBound(t *testing.T) {
	const steps, mu = 60, 0.5
	curved := quadratic{h: []float64{1, 0.8, mu}, c: hard.c}
	for _, sd := range []float64{0.1, 0.5} {
		bound := 2*hardRadius*hardRadius/(steps*(steps+1)) + 8*3*sd*sd/(mu*(steps+1))
		mean, margin := meanRisk(t, curved, sd, hardWorst(), func() (learner.Algorithm, error) {
			return method.NewPAGD(method.PAGDConfig{Dim: 3, Set: convex.Ball{R: hardRadius}, Steps: steps, V: hardBeta, Mu: mu})
		})
		t.Logf("sd %v: mean excess risk %.4f, bound %.4f, margin %.4f", sd, mean, bound, margin)
		if mean > bound+margin {
			t.Errorf("sd %v: mean excess risk %v above the bound %v", sd, mean, bound)
		}
	}
}

// TestGhadimiLan2012_DeterministicRate: the bound of Ghadimi & Lan 2012 without noise, 2 v D0^2/(T(T+1)), holds
// for every single T. It falls with T squared, which plain descent does not reach.
func TestGhadimiLan2012_DeterministicRate(t *testing.T) {
	slow := quadratic{h: []float64{1, 1e-2, 1e-4}, c: []float64{0.5, 0.5, 0.5}}
	for _, steps := range []uint64{1, 2, 5, 20, 100, 1000} {
		for _, mu := range []float64{0, 1e-4} {
			p, err := method.NewPAGD(method.PAGDConfig{Dim: 3, Set: convex.Ball{R: 1}, Steps: steps, V: 2, Mu: mu})
			if err != nil {
				t.Fatal(err)
			}
			for !p.Done() {
				if err := p.Step(slow.estimate(p.Query().Point, 0, nil)); err != nil {
					t.Fatal(err)
				}
			}
			distance := convex.Norm(slow.c)
			if risk, bound := slow.risk(p.Model()), planning.PAGDBound(distance, 0, 2, 1, 0, steps); risk > bound*(1+1e-12) {
				t.Errorf("T = %d, mu = %v: excess risk %v above %v", steps, mu, risk, bound)
			}
		}
	}
}
