package planning_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/planning"
)

// TestPrivUnitErrorIsReached checks that a mechanism that really runs, here with d = 3, reaches the error that
// PrivUnitError returns: it is unbiased and private, and no other cap does better.
func TestPrivUnitErrorIsReached(t *testing.T) {
	const dim, lifted = 3, 4
	for _, epsilon := range []float64{0.5, 2, 6} {
		want, err := planning.PrivUnitError(dim, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		// Find the best cap by trying, with moments by numerical integration over <U, u> in standard deviations.
		least, cap, scale := math.Inf(1), 0.0, 0.0
		for z := 0.0; z < 6; z += 0.032 {
			var above, first, second, below, belowFirst, belowSecond float64
			const step = 4e-3
			for x := -9.0 + step/2; x < 9; x += step {
				w := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * step
				if x >= z {
					above, first, second = above+w, first+w*x, second+w*x*x
				} else {
					below, belowFirst, belowSecond = below+w, belowFirst+w*x, belowSecond+w*x*x
				}
			}
			odds := math.Exp(epsilon) * above / below
			p := odds / (1 + odds)
			mean := p*first/above + (1-p)*belowFirst/below
			square := p*second/above + (1-p)*belowSecond/below
			if e := ((lifted-1+square)/(mean*mean) - 1) / dim; e < least {
				least, cap, scale = e, z, math.Sqrt(lifted)/mean
			}
		}
		if math.Abs(want/least-1) > 1e-3 {
			t.Errorf("epsilon %v: error %v, the best cap has %v", epsilon, want, least)
		}
		// Run it on the unit vector e_1; the privacy of the cap is what its probability was chosen for.
		r := rand.New(rand.NewPCG(7, uint64(epsilon*10)))
		above := math.Erfc(cap/math.Sqrt2) / 2
		odds := math.Exp(epsilon) * above / (1 - above)
		const runs = 50000
		var mean, square float64
		for range runs {
			in := r.Float64() < odds/(1+odds)
			x := r.NormFloat64()
			for (x >= cap) != in {
				x = r.NormFloat64()
			}
			x *= scale / math.Sqrt(lifted)
			mean += x / runs
			square += (x - 1) * (x - 1) / runs
			for range lifted - 1 {
				y := r.NormFloat64() * scale / math.Sqrt(lifted)
				square += y * y / runs
			}
		}
		// Fixed seeds: these are the errors of 50000 runs, about four standard deviations wide.
		if width := 4 * math.Sqrt(square/runs); math.Abs(mean-1) > width {
			t.Errorf("epsilon %v: mean %v, want 1 up to %v", epsilon, mean, width)
		}
		if math.Abs(square/(dim*want)-1) > 0.05 {
			t.Errorf("epsilon %v: squared error %v, want %v", epsilon, square, dim*want)
		}
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := planning.PrivUnitError(3, bad); err == nil {
			t.Errorf("epsilon %v is accepted", bad)
		}
	}
}
