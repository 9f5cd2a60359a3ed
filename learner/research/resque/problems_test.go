package resque

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/learner/convex"
)

// deviations returns rows of norm 1 in d dimensions whose labels are linear in them, with a model of norm 0.9
// and noise of heavy tails: a problem of least absolute deviations with L = 1.
func deviations(t testing.TB, n, d int) []convex.Example {
	random := rand.New(dptest.Source(t, 3))
	model := make([]float64, d)
	unit(random, model)
	out := make([]convex.Example, n)
	for i := range out {
		x := make([]float64, d)
		unit(random, x)
		out[i] = convex.Example{Value: x, Label: .9*dot(model, x) + .05*random.NormFloat64()/(.1+random.Float64())}
	}
	return out
}

func unit(random *rand.Rand, x []float64) {
	for i := range x {
		x[i] = random.NormFloat64()
	}
	scale := 1 / math.Sqrt(dot(x, x))
	for i := range x {
		x[i] *= scale
	}
}

// deviation returns the mean of the absolute loss.
func deviation(rows []convex.Example, x []float64) float64 {
	var sum float64
	for _, e := range rows {
		sum += convex.Absolute{}.Value(x, e)
	}
	return sum / float64(len(rows))
}

// smallest returns a value that the mean absolute deviation has in the ball of radius R, within accuracy of the
// smallest: accelerated gradient descent on Moreau envelopes of the rows, f_b <= f <= f_b + 1/(2b), within 4 b
// R^2/T^2 of the smallest f_b.
func smallest(t testing.TB, rows []convex.Example, d int, radius, accuracy float64) float64 {
	b := 1 / accuracy
	steps := int(math.Ceil(math.Sqrt(8) * radius / accuracy))
	smooth, err := convex.NewEnvelope(convex.Absolute{}, b)
	if err != nil {
		t.Fatal(err)
	}
	ag, prox, md, one, g := make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d),
		make([]float64, d)
	for k := 1; k <= steps; k++ {
		alpha, move := 2/float64(k+1), float64(k)/(4*b) // v = 2b
		for i := range md {
			md[i] = (1-alpha)*ag[i] + alpha*prox[i]
		}
		clear(g)
		for _, e := range rows {
			smooth.Gradient(one, md, e)
			for i, v := range one {
				g[i] += v / float64(len(rows))
			}
		}
		for i, v := range g {
			prox[i] -= move * v
		}
		convex.Clip(prox, radius)
		for i, v := range prox {
			ag[i] = alpha*v + (1-alpha)*ag[i]
		}
	}
	return deviation(rows, ag)
}
