package convex_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// size returns a bound on the magnitude from which values of a drawn loss may have been rounded: its terms are
// below a few thousands.
func size(values ...float64) float64 {
	s := 1000.0
	for _, v := range values {
		s += math.Abs(v)
	}
	return s
}

func TestLossIsConvex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawLoss(t)
		at := rapid.Float64Range(0, 1).Draw(t, "t")
		va, vb, v := l.Value(s.a, s.e), l.Value(s.b, s.e), l.Value(along(s.a, minus(s.b, s.a), at), s.e)
		if chord := (1-at)*va + at*vb; v > chord+1e-12*size(va, vb) {
			t.Fatalf("%s: value %v above the chord's %v", l.Name(), v, chord)
		}
		rise := dot(gradient(l, s.a, s.e), minus(s.b, s.a))
		if vb < va+rise-1e-12*size(va, vb, rise) {
			t.Fatalf("%s: value %v below its tangent %v", l.Name(), vb, va+rise)
		}
	})
}

// TestGradientIsTheDerivative: the difference quotients to both sides bracket the subgradient; where the
// gradient is beta-Lipschitz, the central one is within beta h ||d||^2/2 of the derivative.
func TestGradientIsTheDerivative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawLoss(t)
		d := s.b
		h := 1e-5 / (1 + s.e.Norm()*convex.Norm(d))
		less, at, plus := l.Value(along(s.a, d, -h), s.e), l.Value(s.a, s.e), l.Value(along(s.a, d, h), s.e)
		got, rounding := dot(gradient(l, s.a, s.e), d), 1e-14*size(less, at, plus)/h
		if got < (at-less)/h-rounding || got > (plus-at)/h+rounding {
			t.Fatalf("%s: directional derivative %v outside the one-sided quotients %v, %v", l.Name(), got, (at-less)/h,
				(plus-at)/h)
		}
		central, n := (plus-less)/(2*h), convex.Norm(d)
		if math.Abs(got-central) > l.Smoothness(s.e.Norm())*h*n*n/2+rounding {
			t.Fatalf("%s: directional derivative %v, difference quotient %v", l.Name(), got, central)
		}
	})
}

func TestLipschitzAndSmoothnessAreBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawLoss(t)
		ga, gb, x := gradient(l, s.a, s.e), gradient(l, s.b, s.e), s.e.Norm()
		// An envelope's gradient may be computed as b (theta - prox), which cancels: a rounding of theta counts b times.
		rounding := 0x1p-50 * s.smoothing * convex.Norm(s.a)
		if n := convex.Norm(ga); n > l.Lipschitz(x)*(1+1e-12)+rounding {
			t.Fatalf("%s: gradient norm %v above the Lipschitz constant %v", l.Name(), n, l.Lipschitz(x))
		}
		change, distance := convex.Norm(minus(ga, gb)), convex.Norm(minus(s.a, s.b))
		if change > l.Smoothness(x)*distance*(1+1e-9)+1e-10 {
			t.Fatalf("%s: gradient moved %v over a distance %v, smoothness %v", l.Name(), change, distance, l.Smoothness(x))
		}
	})
}

// corners returns scores at which the slope or the curvature of one of the declared losses is extreme, some
// differences of them too.
func corners() []float64 {
	scores := []float64{-1e3, -60, 60, 1e3}
	for s := -8.0; s <= 8; s += 1.0 / 16 {
		scores = append(scores, s)
	}
	return scores
}

// TestConstantsAreAttained finds, for every declared loss and some of its envelopes, gradients of 0.99 times the
// Lipschitz constant, and curvatures of 0.99 times the smoothness, so that neither constant could be smaller.
func TestConstantsAreAttained(t *testing.T) {
	for _, d := range declared {
		l := declare(t, d.Declaration)
		for _, b := range []float64{0, 0.5, 50} {
			f := convex.Loss(l)
			if b > 0 {
				f = envelope(t, l, b)
			}
			e, n := convex.Example{Value: []float64{3, 4}}, l.Parameters(1)
			const x = 5
			var slope, curvature float64
			for _, y := range d.labels {
				e.Label = y
				for _, s := range corners() {
					for other := range max(1, n-1) { // softmax: the scores of two classes apart, the rest far below
						theta, step := make([]float64, 2*n), make([]float64, 2*n)
						set := func(v []float64, class int, to float64) { v[2*class], v[2*class+1] = 3*to/(x*x), 4*to/(x*x) }
						for class := range n {
							set(theta, class, -60)
						}
						set(theta, int(max(y, 0))%n, 0)
						second := (int(max(y, 0)) + 1 + other) % n
						set(theta, second, s)
						if b > 0 { // to the point whose prox is theta
							theta = along(theta, gradient(l, theta, e), 1/b)
						}
						g := gradient(f, theta, e)
						slope = max(slope, convex.Norm(g))
						for _, h := range []float64{1e-6, -1e-6} {
							set(step, second, h)
							if n > 1 {
								set(step, int(y), -h)
							}
							change := minus(gradient(f, along(theta, step, 1), e), g)
							curvature = max(curvature, convex.Norm(change)/convex.Norm(step))
						}
					}
				}
			}
			if c := f.Lipschitz(x); !math.IsInf(c, 1) && !(slope >= 0.99*c && slope <= c*(1+1e-12)) {
				t.Errorf("%+v, b = %v: largest gradient %v, Lipschitz constant %v", d.Declaration, b, slope, c)
			}
			if c := f.Smoothness(x); !math.IsInf(c, 1) && !(curvature >= 0.99*c && curvature <= c*(1+1e-4)) {
				t.Errorf("%+v, b = %v: largest curvature %v, smoothness %v", d.Declaration, b, curvature, c)
			}
		}
	}
}

func TestConstantsThatDoNotExist(t *testing.T) {
	for _, l := range []convex.Loss{convex.Squared{}, given(convex.Declaration{Name: "poisson", ScoreBound: 1})} {
		if !math.IsInf(l.Lipschitz(1), 1) || l.Lipschitz(0) != 0 {
			t.Errorf("%s: the Lipschitz constant must be +Inf for x > 0 and 0 for x = 0", l.Name())
		}
	}
	for _, l := range []convex.Loss{convex.Absolute{}, given(convex.Declaration{Name: "quantile", Level: 0.5}),
		convex.Hinge{}} {
		if !math.IsInf(l.Smoothness(1), 1) || l.Smoothness(0) != 0 {
			t.Errorf("%s: the smoothness must be +Inf for x > 0 and 0 for x = 0", l.Name())
		}
	}
}

func TestLogisticIsStableAtLargeMargins(t *testing.T) {
	for _, m := range []float64{-1e4, -800, -40, 0, 40, 800, 1e4} {
		e := convex.Example{Value: []float64{1}, Label: 1}
		v, g := convex.Logistic{}.Value([]float64{m}, e), gradient(convex.Logistic{}, []float64{m}, e)[0]
		if math.IsInf(v, 0) || math.IsNaN(v) || math.IsNaN(g) || g > 0 || g < -1 {
			t.Errorf("margin %v: value %v, gradient %v", m, v, g)
		}
		if m < 0 && math.Abs(v+m) > math.Ln2 {
			t.Errorf("margin %v: value %v, want about %v", m, v, -m)
		}
	}
}

func TestSparseEqualsDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawLoss(t)
		dense, theta := s.e, s.a
		sparse := convex.Example{Index: []int32{}, Label: dense.Label}
		for i, v := range dense.Value {
			if rapid.Bool().Draw(t, "keep") {
				sparse.Index, sparse.Value = append(sparse.Index, int32(i)), append(sparse.Value, v)
			} else {
				dense.Value[i] = 0
			}
		}
		if err := sparse.Validate(len(dense.Value)); err != nil {
			t.Fatal(err)
		}
		if s, d := sparse.Norm(), dense.Norm(); s != d {
			t.Fatalf("norm %v sparse, %v dense", s, d)
		}
		if s, d := l.Value(theta, sparse), l.Value(theta, dense); s != d {
			t.Fatalf("value %v sparse, %v dense", s, d)
		}
		for _, pair := range [][2][]float64{
			{gradient(l, theta, sparse), gradient(l, theta, dense)},
			{prox(s.loss, theta, sparse, 2), prox(s.loss, theta, dense, 2)},
		} {
			for i, v := range pair[0] {
				if v != pair[1][i] {
					t.Fatalf("%s: %v sparse, %v dense at %d", l.Name(), v, pair[1][i], i)
				}
			}
		}
	})
}

func TestValidateRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, e := range map[string]convex.Example{
		"short":          {Value: []float64{1}},
		"long":           {Value: []float64{1, 2, 3}},
		"pairs":          {Index: []int32{0}, Value: []float64{1, 2}},
		"negative":       {Index: []int32{-1}, Value: []float64{1}},
		"outside":        {Index: []int32{2}, Value: []float64{1}},
		"repeated":       {Index: []int32{1, 1}, Value: []float64{1, 2}},
		"descending":     {Index: []int32{1, 0}, Value: []float64{1, 2}},
		"nan":            {Value: []float64{nan, 0}},
		"inf":            {Value: []float64{0, inf}},
		"overflow":       {Value: []float64{math.MaxFloat64, math.MaxFloat64}},
		"label nan":      {Value: []float64{0, 0}, Label: nan},
		"label infinite": {Value: []float64{0, 0}, Label: inf},
	} {
		if err := e.Validate(2); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExamplePrintsNothing(t *testing.T) {
	e := convex.Example{Index: []int32{77}, Value: []float64{88.5}, Label: 99.5}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		if s := fmt.Sprintf(verb+verb, e, &e); strings.ContainsAny(s, "789") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}
