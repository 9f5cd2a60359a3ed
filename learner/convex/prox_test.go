package convex_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// objective returns the function that the prox minimizes.
func objective(l convex.Loss, u, theta []float64, e convex.Example, b float64) float64 {
	n := convex.Norm(minus(u, theta))
	return l.Value(u, e) + b/2*n*n
}

// TestProxIsOptimal: u is the prox of theta if and only if b (theta - u) is a subgradient at u: l(z) >= l(u) +
// b <theta - u, z - u> for all z, near and far.
func TestProxIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := draw(t), drawSmoothing(t)
		u := prox(s.loss, s.a, s.e, b)
		v := s.loss.Value(u, s.e)
		for _, way := range []float64{1, 1e-3, 1e-6} {
			z := along(u, s.b, way)
			rise := b * dot(minus(s.a, u), minus(z, u))
			// What rounding leaves of theta - u is up to 2^-52 ||theta|| b per entry.
			slack := 1e-13*size(v, s.loss.Value(z, s.e)) + 1e-14*b*convex.Norm(s.a)*convex.Norm(minus(z, u))
			if got := s.loss.Value(z, s.e); got < v+rise-slack {
				t.Fatalf("%s: l(z) = %v below l(u) + b <theta-u, z-u> = %v at distance %v", s.loss.Name(), got, v+rise, way)
			}
		}
		best := objective(s.loss, u, s.a, s.e, b)
		if o := objective(s.loss, s.b, s.a, s.e, b); o < best-1e-13*size(o, best) {
			t.Fatalf("%s: objective %v at another point, %v at the prox", s.loss.Name(), o, best)
		}
	})
}

// slowProx minimizes along the features, where the prox of a loss of one score lies: by bisection on the sign of the
// derivative, which Gradient gives.
func slowProx(l convex.Loss, theta []float64, e convex.Example, b float64) []float64 {
	n := e.Norm()
	low, high := -1e6, 1e6
	for range 2000 {
		t := low + (high-low)/2
		if t <= low || t >= high {
			break
		}
		if dot(gradient(l, along(theta, e.Value, t), e), e.Value)+b*t*n*n > 0 {
			high = t
		} else {
			low = t
		}
	}
	return along(theta, e.Value, low)
}

func TestProxAgreesWithBisection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := draw(t), drawSmoothing(t)
		if s.loss.Parameters(1) != 1 || s.e.Norm() < 1e-3 {
			return
		}
		got, want := prox(s.loss, s.a, s.e, b), slowProx(s.loss, s.a, s.e, b)
		if d := convex.Norm(minus(got, want)); d > 1e-11*(1+convex.Norm(want))*(1+1/s.e.Norm()) {
			t.Fatalf("%s, b = %v: prox %v, by bisection %v", s.loss.Name(), b, got, want)
		}
	})
}

// slowSoftmaxProx computes the prox by gradient descent, which is a contraction by 1 - b/(b + beta).
func slowSoftmaxProx(l convex.Loss, theta []float64, e convex.Example, b float64) []float64 {
	u, x := append([]float64(nil), theta...), e.Norm()
	for range 40 * int(1+l.Smoothness(x)/b) {
		g := gradient(l, u, e)
		for i := range g {
			u[i] -= (g[i] + b*(u[i]-theta[i])) / (b + l.Smoothness(x))
		}
	}
	return u
}

func TestSoftmaxProxAgreesWithGradientDescent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, dim := rapid.IntRange(2, 6).Draw(t, "classes"), rapid.IntRange(1, 3).Draw(t, "dim")
		l := convex.Softmax{Classes: k}
		e := convex.Example{Value: vectors(dim, 3).Draw(t, "x"), Label: float64(rapid.IntRange(0, k-1).Draw(t, "label"))}
		theta := vectors(k*dim, 5).Draw(t, "theta")
		b := math.Pow(10, rapid.Float64Range(-1, 3).Draw(t, "log10 b"))
		got, want := prox(l, theta, e, b), slowSoftmaxProx(l, theta, e, b)
		if d := convex.Norm(minus(got, want)); d > 1e-12*(1+convex.Norm(want)) {
			t.Fatalf("b = %v: prox %v, by gradient descent %v", b, got, want)
		}
	})
}

// TestSoftmaxOfTwoClassesIsLogistic: the softmax of two classes is the logistic loss of half the difference's
// score, so are its prox and envelope.
func TestSoftmaxOfTwoClassesIsLogistic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, b := rapid.IntRange(1, 4).Draw(t, "dim"), drawSmoothing(t)
		x, theta := vectors(dim, 3).Draw(t, "x"), vectors(dim, 3).Draw(t, "theta")
		class := rapid.IntRange(0, 1).Draw(t, "class")
		both := append(along(make([]float64, dim), theta, -0.5), along(make([]float64, dim), theta, 0.5)...)
		soft := envelope(t, convex.Softmax{Classes: 2}, b)
		logistic := envelope(t, convex.Logistic{}, b/2) // (b/2) ||u - theta||^2 counts each half twice
		es, el := convex.Example{Value: x, Label: float64(class)}, convex.Example{Value: x, Label: float64(2*class - 1)}
		if v, w := soft.Value(both, es), logistic.Value(theta, el); math.Abs(v-w) > 1e-12*(1+w) {
			t.Fatalf("envelope %v of softmax, %v of logistic", v, w)
		}
		gs, gl := gradient(soft, both, es), gradient(logistic, theta, el)
		for i, g := range gl {
			if math.Abs(gs[i]+g) > 1e-12*(1+math.Abs(g)) || math.Abs(gs[dim+i]-g) > 1e-12*(1+math.Abs(g)) {
				t.Fatalf("gradient %v of softmax, %v of logistic", gs, gl)
			}
		}
	})
}

// TestProxEquations: a prox to the last digits satisfies its equation to the last digits, for scores and
// parameters of every size.
func TestProxEquations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.Float64Range(-1000, 1000).Draw(t, "z")
		b := math.Pow(10, rapid.Float64Range(-12, 12).Draw(t, "log10 b"))
		for _, c := range []struct {
			loss  convex.Loss
			label float64
		}{
			{convex.Logistic{}, -1}, {convex.Logistic{}, 1}, {given(convex.Declaration{Name: "poisson", ScoreBound: 300}), 0},
			{given(convex.Declaration{Name: "poisson", ScoreBound: 3}), 7},
			{given(convex.Declaration{Name: "poisson", ScoreBound: 300}), 12345},
		} {
			e := convex.Example{Value: []float64{1}, Label: c.label}
			p := gradient(envelope(t, c.loss, b), []float64{z}, e)[0]
			at := z - p/b
			// The slope at the prox, which moves by beta times what rounding makes of the point.
			here, ulp := gradient(c.loss, []float64{at}, e)[0], 0x1p-50*(math.Abs(z)+(math.Abs(p)+math.Abs(c.label))/b+
				math.Abs(at))
			below, above := gradient(c.loss, []float64{at - ulp}, e)[0], gradient(c.loss, []float64{at + ulp}, e)[0]
			relative := 1e-14 * (math.Abs(here) + math.Abs(c.label))
			if p < below-relative || p > above+relative {
				t.Fatalf("%s, y = %v, z = %v, b = %v: slope %v at the prox %v, want %v", c.loss.Name(), c.label, z, b, p, at, here)
			}
		}
	})
}
