package convex_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestClippingTakesAsManyStepsForEveryRow: a learner that chooses the point chooses how hard a row's gradient
// is to clip. It costs as many evaluations as any other row's, also where nothing is to be clipped, or scores
// are no numbers.
func TestClippingTakesAsManyStepsForEveryRow(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	want := convex.Evaluations([]float64{0, 0}, 0, 0, 1)
	for _, far := range []float64{0, 1e-300, 1e-3, 1, 30, 700, 1e5, 1e300, math.Inf(1), math.NaN()} {
		for _, most := range []float64{1e-300, 1e-9, 0.5, 1.2, 1.4142, 10, math.Inf(1), math.NaN()} {
			for _, least := range []float64{0, 0x1p-60, 1, 1e9} {
				scores := make([]float64, 2+draw.IntN(9))
				for j := range scores {
					scores[j] = far * draw.NormFloat64()
				}
				if got := convex.Evaluations(scores, draw.IntN(len(scores)), least, most); got != want {
					t.Errorf("scores of size %v, smoothing %v, limit %v: %d evaluations, %d elsewhere", far, least, most, got, want)
				}
			}
		}
	}
}

// TestClippedGradientReachesItsLimit: the search of a clipped gradient reaches the limit at any scores: those
// which a hostile point makes are as large as it likes.
func TestClippedGradientReachesItsLimit(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	short := 0
	const trials = 4000
	for range trials {
		k := []int{2, 3, 6, 31}[draw.IntN(4)]
		theta, g := make([]float64, k), make([]float64, k)
		for j := range theta {
			theta[j] = draw.NormFloat64() * math.Pow(10, 6*draw.Float64()-2)
		}
		e := convex.Example{Value: []float64{1}, Label: float64(draw.IntN(k))}
		convex.Softmax{Classes: k}.Gradient(g, theta, e)
		norm := convex.Norm(g)
		limit := norm * (1 - math.Pow(2, -1-30*draw.Float64()))
		convex.ClippedGradient(convex.Softmax{Classes: k}, g, theta, e, limit)
		if n := convex.Norm(g); n > limit || n < limit*(1-1e-9) {
			short++
			t.Logf("%d classes: norm %v, limit %v", k, n, limit)
		}
		var sum, size float64
		for _, v := range g {
			sum, size = sum+v, size+math.Abs(v)
		}
		if math.Abs(sum) > 1e-12*size {
			t.Errorf("%d classes: slopes sum to %v of %v", k, sum, size)
		}
	}
	if short > 0 {
		t.Errorf("%d of %d gradients miss their limit", short, trials)
	}
}
