package method_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// looked returns a plan with scores whose first look released two equal shares, so that the best constant has a
// loss of about ln 2.
func looked(t *testing.T, rounds uint64) learner.Algorithm {
	a := begin(t, scored(inPractice(convex.Declaration{Name: "logistic"}, false, rounds)))
	moments := method.Estimate{Gradient: make([]float64, 3+2+1), Users: 10000, PrivacyVariance: 1e-6, NoiseProxy: 1e-6}
	if err := a.Step(moments); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestDivergence checks that a plan whose loss stays above the best constant's reports divergence from the
// third round on. A plan that begins badly and recovers, or is a little worse in a single round, does not, nor
// does a plan at the constant itself. At the scale's end it reports that the loss may be worse.
func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		losses            []float64
		diverges, atBound bool
	}{
		{[]float64{0.7, 2}, false, false},
		{[]float64{0.7, 1.5, 2}, true, false},
		{[]float64{0.7, 1.5, 2, 2, 2, 2}, true, false},
		{[]float64{3, 2, 1.2, 0.5}, false, false},
		{[]float64{0.7, 0.69, 0.69, 0.69, 0.69, 0.75}, false, false},
		{[]float64{0.7, 0.6, 0.5, 0.45}, false, false},
		{[]float64{3.9, 3.9, 3.9}, true, true},
	} {
		a := looked(t, 8)
		for _, loss := range c.losses {
			if err := a.Step(valued(make([]float64, 4), loss, 0.9, 10000, 1e-5)); err != nil {
				t.Fatal(err)
			}
		}
		if v := learner.ValidationOf(a); v.Diverges != c.diverges || v.AtBound != c.atBound {
			t.Errorf("after %v: diverges %t, at the bound %t of %+v", c.losses, v.Diverges, v.AtBound, v.Loss)
		}
	}
}

// TestNoDivergenceAtTheConstant runs plans that learn nothing and stay at the best constant. Their own scores
// and the constant's are noisy; a round reports divergence with probability at most 8e-7, and so one of these
// 16,000 with 1.3 %, which a fixed seed settles.
func TestNoDivergenceAtTheConstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		a := begin(t, scored(inPractice(convex.Declaration{Name: "logistic"}, false, 8)))
		const sd = 0.05 // of a mean label of -0.6: shares of 0.8 and 0.2
		moments := make([]float64, 6)
		moments[5] = -0.6 + sd*rng.NormFloat64()
		if err := a.Step(method.Estimate{Gradient: moments, Users: 100, PrivacyVariance: sd * sd,
			NoiseProxy: sd * sd}); err != nil {
			t.Fatal(err)
		}
		constant := -0.8*math.Log(0.8) - 0.2*math.Log(0.2)
		for range 8 {
			e := valued(make([]float64, 4), constant, 0.8, 1000, 0.01)
			for i := range e.Gradient[:5] {
				e.Gradient[i] += 0.1 * rng.NormFloat64()
			}
			if err := a.Step(e); err != nil {
				t.Fatal(err)
			}
			if v := learner.ValidationOf(a); v.Diverges {
				t.Fatalf("round %d diverges at the constant: %+v", v.Rounds, v.Loss)
			}
		}
	}
}
