package curator

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestBlurOfANorm: f_r(0) = r d/(d+1) for the norm, and f <= f_r <= f + r everywhere.
func TestBlurOfANorm(t *testing.T) {
	for _, c := range []struct {
		d    int
		want float64
	}{{1, 0.5}, {2, 2. / 3}, {10, 10. / 11}} {
		const draws, r = 40000, 3.
		b := newBlur(r, c.d, rand.NewPCG(5, uint64(c.d)))
		for _, at := range []float64{0, 1, 5} {
			x := make([]float64, c.d)
			x[0] = at
			var sum, most float64
			for range draws {
				v := convex.Norm(b.around(x))
				sum, most = sum+v, max(most, v)
			}
			// The norm is within 2 r of its mean: by Hoeffding's inequality further off with probability below 1e-9.
			off := 2 * r * math.Sqrt(math.Log(2e9)/2/draws)
			mean := sum / draws
			if at == 0 && math.Abs(mean-c.want*r) > off || mean < at-off || mean > at+r+off || most > at+r*(1+1e-12) {
				t.Errorf("d = %d at %v: mean %v, most %v", c.d, at, mean, most)
			}
		}
		if want := 2 * math.Sqrt(float64(c.d)) / r; blurredSmoothness(2, r, c.d) != want {
			t.Errorf("smoothness %v, want %v", blurredSmoothness(2, r, c.d), want)
		}
	}
}

// TestBlurredGradients: those of the absolute loss at its kink have the blurred loss's mean, 0, fresh draws, and
// norms of at most the clip norm.
func TestBlurredGradients(t *testing.T) {
	who := Person{{Value: []float64{3, 4}}}
	g, part := make([]float64, 2), make([]float64, 2)
	b := newBlur(1, 2, rand.NewPCG(7, 8))
	var sum, last float64
	changes := 0
	const draws = 4000
	for range draws {
		b.gradient(g, part, convex.Absolute{}, who, []float64{0, 0}, 2)
		if convex.Norm(g) > 2 || math.Abs(convex.Norm(g)-2) > 1e-12 {
			t.Fatal(g)
		}
		sum += g[0] / 1.2
		if g[0] != last {
			changes++
		}
		last = g[0]
	}
	if math.Abs(sum) > 6*math.Sqrt(draws)+1 || changes < draws/3 {
		t.Errorf("mean sign %v, %d changes", sum/draws, changes)
	}
	// Without a radius, and without rows.
	newBlur(0, 2, rand.NewPCG(1, 1)).gradient(g, part, convex.Absolute{}, append(who, who...), []float64{1, 1}, 2)
	if math.Abs(g[0]-1.2) > 1e-12 || math.Abs(g[1]-1.6) > 1e-12 {
		t.Error(g)
	}
	if b.gradient(g, part, convex.Absolute{}, nil, []float64{1, 1}, 2); convex.Norm(g) != 0 {
		t.Error(g)
	}
}
