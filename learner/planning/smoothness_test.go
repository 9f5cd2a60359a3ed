package planning

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// Users here report unit vectors of R^d, the j-th with probability proportional to 1/j, and labels that contradict each
// other: one example is several times as curved as their mean, whose excess risk and its gradient this returns.
func harmonic(theta []float64) (risk float64, gradient []float64) {
	var sum float64
	for j := range theta {
		sum += 1 / float64(j+1)
	}
	gradient = make([]float64, len(theta))
	one := make([]float64, 1)
	for j, s := range theta {
		for _, label := range []float64{1, -1} {
			e := convex.Example{Value: []float64{1}, Label: label}
			weight := (0.5 + 0.2*label) / float64(j+1) / sum
			risk += weight * (convex.Logistic{}.Value([]float64{s}, e) - convex.Logistic{}.Value([]float64{math.Log(7. / 3)}, e))
			convex.Logistic{}.Gradient(one, []float64{s}, e)
			gradient[j] += weight * one[0]
		}
	}
	return risk, gradient
}

// TestRiskIsWithinTheBoundOfTheMeanSmoothness: the bounds hold with the smoothness of the mean loss in the
// place of one example's: that of the population for methods of new users, that of the users for PGD. The risks
// of steps for a small part of it are above their bounds, so the test can fail.
func TestRiskIsWithinTheBoundOfTheMeanSmoothness(t *testing.T) {
	const dim, users, radius = 8, 1 << 30, 4.0
	var sum float64
	for j := range dim {
		sum += 1 / float64(j+1)
	}
	prior, _ := harmonic(make([]float64, dim))
	for _, interactive := range []bool{false, true} {
		for _, share := range []float64{1, 0.01} { // of the true smoothness that is declared
			worst := 0.0 // of the risk over its bound
			for _, steps := range []uint64{2, 10, 50, 250} {
				o := objective{lipschitz: 1, dim: dim, smoothness: 0.25, mean: share * 0.25 / sum, radius: radius}
				at := situation{distance: radius, prior: prior, users: users, steps: steps, variance: 1e-9}
				var a method.Method
				var err error
				set := o.accelerated(at, o.mean)
				if a, err = method.NewPAGD(method.PAGDConfig{Dim: dim, Set: convex.Ball{R: radius}, Steps: steps,
					V: set.v}); interactive {
					set = o.gradient(at, math.Inf(1))
					a, err = method.NewPSGD(method.PSGDConfig{Dim: dim, Set: convex.Ball{R: radius}, Steps: steps,
						StepSize: set.stepSize})
				}
				if err != nil {
					t.Fatal(err)
				}
				for !a.Done() {
					_, g := harmonic(a.Query().Point)
					if err := a.Step(method.Estimate{Gradient: g, Users: users}); err != nil {
						t.Fatal(err)
					}
				}
				risk, _ := harmonic(a.Model())
				worst = max(worst, risk/set.risk)
			}
			t.Logf("interactive %v, %v of the smoothness: risk at most %.3f of the bound", interactive, share, worst)
			if (share == 1) != (worst <= 1) {
				t.Errorf("interactive %v, %v of the smoothness: risk %v of the bound", interactive, share, worst)
			}
		}
	}
}

// TestEmpiricalSmoothness checks that the mean of n users is less smooth than empiricalSmoothness with at most
// the given probability. Of unit vectors the largest eigenvalue of their mean is the largest share of the
// users.
func TestEmpiricalSmoothness(t *testing.T) {
	const dim, users, runs, probability = 8, 400, 4000, 0.05
	r := rand.New(rand.NewPCG(11, 0))
	limit := empiricalSmoothness(1, 1./dim, users, dim, probability)
	above, largest := 0, 0.0
	for range runs {
		var count [dim]float64
		for range users {
			count[r.IntN(dim)] += 1. / users
		}
		most := 0.0
		for _, share := range count {
			most = max(most, share)
		}
		if largest = max(largest, most); most > limit {
			above++
		}
	}
	t.Logf("at most %.4f, seen %.4f, above in %d of %d", limit, largest, above, runs)
	if float64(above) > probability*runs {
		t.Errorf("%d of %d means are less smooth than %v", above, runs, limit)
	}
	if largest < 1./dim+(limit-1./dim)/2 {
		t.Errorf("the largest was %v: %v says too little", largest, limit)
	}
	if empiricalSmoothness(1, 2, users, dim, 0.01) != 1 || empiricalSmoothness(1, 0.01, 1, dim, 0.01) != 1 {
		t.Error("a mean of examples is less smooth than each")
	}
	if got := empiricalSmoothness(1, 0.1, 1<<40, dim, 1e-9); math.Abs(got/0.1-1) > 1e-3 {
		t.Errorf("with many users %v, want that of the population, 0.1", got)
	}
}
