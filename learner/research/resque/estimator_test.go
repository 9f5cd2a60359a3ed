package resque

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// zLimit is the two-sided quantile of a normal at a false-alarm rate of 1e-10. Samples here are of 1e5 and more
// terms with light enough tails for that.
const zLimit = 6.47

// mean fails where the mean of samples is further from want than zLimit standard errors.
func mean(t *testing.T, what string, samples []float64, want float64) {
	t.Helper()
	var sum, squares float64
	for _, x := range samples {
		sum += x
	}
	n := float64(len(samples))
	m := sum / n
	for _, x := range samples {
		squares += (x - m) * (x - m)
	}
	if z := (m - want) / math.Sqrt(squares/n/n); !(math.Abs(z) < zLimit) {
		t.Errorf("%s: mean %v of %d, want %v: z = %.1f", what, m, len(samples), want, z)
	}
}

// estimates calls each with n estimates around a centre, at x.
func estimates(t *testing.T, n int, centre, x []float64, rho float64, gradient func(dst, at []float64),
	each func(w float64, g []float64)) {
	random := rand.New(dptest.Source(t, 7))
	v := make([]float64, len(x))
	for i := range v {
		v[i] = x[i] - centre[i]
	}
	xi, at, g := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	for range n {
		for i := range xi {
			xi[i] = rho * random.NormFloat64()
			at[i] = centre[i] + xi[i]
		}
		gradient(g, at)
		each(math.Exp(LogWeight(v, xi, rho)), g)
	}
}

// E w^p = exp(p(p-1) s^2/2): the moments of the paper's Lemma 2(a), exactly and as they are drawn.
func TestWeightMoments(t *testing.T) {
	moment := func(p, s float64) float64 { return math.Exp(p * (p - 1) * s * s / 2) }
	near(t, "E w^2 at s = 1", secondMoment(1), 2.718282, 1e-6)
	near(t, "E w^2 as a moment", secondMoment(.7), moment(2, .7), 1e-12)
	near(t, "E w^3 at s = .5", moment(3, .5), 2.117000, 1e-6)
	for p, want := range map[float64]float64{2: 1.28403, 3: 1.39561, 5: 1.49182, 10: 1.56831, 50: 1.63232} {
		near(t, "E w^p at s = 1/p", moment(p, 1/p), want, 1e-5)
		if want > 2 {
			t.Errorf("E w^%v above 2", p)
		}
	}
	for _, c := range []struct{ p, s float64 }{{1, 1}, {2, .5}, {3, .3}, {10, .1}, {-1, .5}} {
		var samples []float64
		rho := .3 // along a direction that is no axis
		v := []float64{rho * c.s * .6, 0, -rho * c.s * .8}
		estimates(t, 300_000, make([]float64, 3), v, rho, func(_, _ []float64) {},
			func(w float64, _ []float64) { samples = append(samples, math.Pow(w, c.p)) })
		mean(t, "E w^p", samples, moment(c.p, c.s))
	}
}

// The estimate of the gradient of a quadratic, whose smoothing adds a constant, is unbiased and has the second
// moment of the tilting identity.
func TestUnbiasedOnQuadratic(t *testing.T) {
	q := [][]float64{{1, .2, 0}, {.2, .5, .1}, {0, .1, 2}}
	centre, x, rho := []float64{.3, -.2, .1}, []float64{.5, -.1, .2}, .5
	product := func(dst, x []float64) {
		for i, row := range q {
			dst[i] = dot(row, x)
		}
	}
	want, tilted, frobenius, square := make([]float64, 3), make([]float64, 3), 0.0, 0.0
	product(want, x)
	for i, v := range []float64{.48, .07, .39} {
		near(t, "Qx", want[i], v, 1e-12)
	}
	shifted := make([]float64, 3)
	for i := range x {
		shifted[i] = centre[i] + 2*(x[i]-centre[i])
		square += (x[i] - centre[i]) * (x[i] - centre[i])
		frobenius += dot(q[i], q[i])
	}
	product(tilted, shifted)
	second := secondMoment(math.Sqrt(square)/rho) * (dot(tilted, tilted) + rho*rho*frobenius)
	near(t, "second moment", second, 2.8175966, 1e-7)
	samples := make([][]float64, 4)
	estimates(t, 400_000, centre, x, rho, product, func(w float64, g []float64) {
		for i := range g {
			samples[i] = append(samples[i], w*g[i])
		}
		samples[3] = append(samples[3], w*w*dot(g, g))
	})
	for i := range want {
		mean(t, "gradient", samples[i], want[i])
	}
	mean(t, "second moment", samples[3], second)
}

// |x| in one dimension: the smoothed gradient is an error function, the second moment exactly exp(s^2).
func TestAbsoluteValue(t *testing.T) {
	const rho, x = .2, .1
	near(t, "fhat'", math.Erf(x/rho/math.Sqrt2), 0.382925, 1e-6)
	fhat := x*math.Erf(x/rho/math.Sqrt2) + rho*math.Sqrt(2/math.Pi)*math.Exp(-x*x/rho/rho/2)
	near(t, "fhat", fhat, 0.179119, 1e-5)
	if zero := rho * math.Sqrt(2/math.Pi); !(zero <= rho) {
		t.Errorf("smoothing costs %v at 0, above L rho sqrt(d)", zero)
	}
	for _, centre := range []float64{0, .04, .25} {
		var gradients, squares, values []float64
		estimates(t, 400_000, []float64{centre}, []float64{x}, rho, func(dst, at []float64) {
			dst[0] = math.Copysign(1,
				at[0])
		}, func(w float64, g []float64) {
			gradients = append(gradients, w*g[0])
			squares = append(squares, w*w)
		})
		estimates(t, 400_000, []float64{x}, []float64{x}, rho, func(dst, at []float64) { dst[0] = math.Abs(at[0]) },
			func(_ float64, g []float64) { values = append(values, g[0]) })
		mean(t, "gradient", gradients, math.Erf(x/rho/math.Sqrt2))
		mean(t, "second moment", squares, secondMoment((x-centre)/rho))
		mean(t, "smoothed value", values, fhat)
	}
}
