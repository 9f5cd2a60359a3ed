package private

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
)

// KD of one record replaced, paper step sizes, one record a step.
func TestDriftMultiplierValues(t *testing.T) {
	for _, c := range []struct {
		s      float64
		T      int
		delta  float64
		convex bool
		want   float64
		p      int
	}{
		{0.1, 1024, 1e-10, true, 3.9658, 33},
		{0.2, 1024, 1e-10, true, 7.7962, 17},
		{0.05, 1024, 1e-10, true, 2.8197, 67},
		{0.1, 65536, 1e-13, true, 4.37, 0},
		{0.5, 1024, 1e-10, true, 57.7, 0},
		{0.1, 1024, 1e-10, false, 5.4191, 0},
		{0.1, 16384, 1e-10, false, 14.116, 0},
		{0.1, 256, 1e-4, true, 3.078, 0},
		{0.2, 256, 1e-4, true, 4.696, 0},
	} {
		kd, p := newMoments(c.s, 0, c.convex).multiplier(2, c.s/(4*math.Sqrt(float64(c.T))), c.T/2, c.delta)
		if math.Abs(kd/c.want-1) > 2e-3 || c.p != 0 && p != c.p {
			t.Errorf("s %v, T %d, delta %v, convex %v: %v at p = %d, want %v at %d", c.s, c.T, c.delta, c.convex, kd, p, c.want,
				c.p)
		}
	}
}

// E N^k of a Poisson number: Bell numbers at batch 1, and a binomial's are smaller.
func TestTouchardMoments(t *testing.T) {
	m := newMoments(0.1, 1, true)
	plain := newMoments(0.1, 0, true)
	for k, bell := range map[int]float64{2: 2, 3: 5, 4: 15, 5: 52, 10: 115975} {
		if got := math.Exp(m.coeff[k] - plain.coeff[k]); math.Abs(got/bell-1) > 1e-9 {
			t.Errorf("moment %d: %v, want %v", k, got, bell)
		}
	}
}

// Lemma D against runs: no pair of coupled runs, one of which has a record more, drifts further than KD at its
// probability. Steps are as in the solver, with losses that pull as far apart as they can.
func TestDriftStaysBelowKD(t *testing.T) {
	const trials = 10000
	rng := rand.New(rand.NewPCG(1, 5))
	for _, c := range []struct {
		s, kd float64
	}{{0.1, 3.078}, {0.2, 4.696}} {
		const d, T, radius = 3, 256, 1.0
		rho := radius / c.s
		e := radius / (4 * math.Sqrt(T)) // L = 1
		var worst float64
		for range trials {
			y, z := make([]float64, d), make([]float64, d)
			sumY, sumZ := make([]float64, d), make([]float64, d)
			xi, g := make([]float64, d), make([]float64, d)
			slope := 2*rng.IntN(2) - 1
			at := rng.IntN(8) // the replaced record comes early, and has longest to grow
			for j := range T / 2 {
				for i := range xi {
					xi[i] = rho * rng.NormFloat64()
				}
				row := rng.IntN(d)
				step := func(y []float64, sign float64) {
					clear(g)
					if sign != 0 {
						g[0] = sign
					} else { // |<x, a>| is steepest around the centre
						g[row] = math.Copysign(1, xi[row])
					}
					w := math.Exp(resque.LogWeight(y, xi, rho))
					for i := range y {
						y[i] -= e * w * g[i]
					}
					convex.Clip(y, radius)
				}
				var signY, signZ float64
				if j == at {
					signY, signZ = float64(slope), -float64(slope)
				}
				step(y, signY)
				step(z, signZ)
				for i := range y {
					sumY[i] += y[i]
					sumZ[i] += z[i]
				}
			}
			for i := range sumY {
				sumY[i] = (sumY[i] - sumZ[i]) / (T / 2)
			}
			worst = max(worst, convex.Norm(sumY)/e)
		}
		t.Logf("s %v: %.3f of %d runs, KD %.3f", c.s, worst, trials, c.kd)
		if worst > c.kd || worst < 1.5 {
			t.Errorf("s %v: drift %v, want at most %v", c.s, worst, c.kd)
		}
	}
}
