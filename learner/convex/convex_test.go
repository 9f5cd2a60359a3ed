package convex_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

var losses = []convex.Loss{convex.Logistic{}, convex.Squared{}}

func vectors(dim int, bound float64) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.Float64Range(-bound, bound), dim, dim)
}

func label(t *rapid.T, l convex.Loss) float64 {
	if l.Name() == "logistic" {
		return rapid.SampledFrom([]float64{-1, 1}).Draw(t, "label")
	}
	return rapid.Float64Range(-5, 5).Draw(t, "label")
}

// draw returns a loss, a dense example and two points, all of moderate size.
func draw(t *rapid.T) (convex.Loss, convex.Example, []float64, []float64) {
	l := rapid.SampledFrom(losses).Draw(t, "loss")
	dim := rapid.IntRange(1, 6).Draw(t, "dim")
	e := convex.Example{Value: vectors(dim, 3).Draw(t, "x"), Label: label(t, l)}
	if err := e.Validate(dim); err != nil {
		t.Fatal(err)
	}
	if err := l.CheckLabel(e.Label); err != nil {
		t.Fatal(err)
	}
	return l, e, vectors(l.Parameters(dim), 3).Draw(t, "theta"), vectors(l.Parameters(dim), 3).Draw(t, "theta'")
}

func gradient(l convex.Loss, theta []float64, e convex.Example) []float64 {
	g := make([]float64, len(theta))
	for i := range g {
		g[i] = math.NaN() // Gradient must overwrite
	}
	l.Gradient(g, theta, e)
	return g
}

func dot(a, b []float64) float64 { return convex.Example{Value: a}.Dot(b) }

func minus(a, b []float64) []float64 {
	d := append([]float64(nil), a...)
	for i := range d {
		d[i] -= b[i]
	}
	return d
}

func TestLossIsConvex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, e, a, b := draw(t)
		lower := l.Value(a, e) + dot(gradient(l, a, e), minus(b, a))
		if v := l.Value(b, e); v < lower-1e-9*(1+math.Abs(lower)) {
			t.Fatalf("%s: value %v below its tangent %v", l.Name(), v, lower)
		}
	})
}

func TestGradientIsTheDerivative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, e, a, direction := draw(t)
		const h = 1e-5
		plus, less := append([]float64(nil), a...), append([]float64(nil), a...)
		for i := range a {
			plus[i] += h * direction[i]
			less[i] -= h * direction[i]
		}
		got := dot(gradient(l, a, e), direction)
		want := (l.Value(plus, e) - l.Value(less, e)) / (2 * h)
		// Third derivatives are below 0.1 times |<x, direction>|^3 <= 54^3, rounding below 1e-14 * value / h.
		if math.Abs(got-want) > 1e-5*(1+l.Value(a, e)) {
			t.Fatalf("%s: directional derivative %v, difference quotient %v", l.Name(), got, want)
		}
	})
}

func TestLipschitzAndSmoothnessAreBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, e, a, b := draw(t)
		ga, gb := gradient(l, a, e), gradient(l, b, e)
		x := e.Norm()
		if n := convex.Norm(ga); n > l.Lipschitz(x)*(1+1e-12) {
			t.Fatalf("%s: gradient norm %v above the Lipschitz constant %v", l.Name(), n, l.Lipschitz(x))
		}
		change, distance := convex.Norm(minus(ga, gb)), convex.Norm(minus(a, b))
		if change > l.Smoothness(x)*distance*(1+1e-9)+1e-12 {
			t.Fatalf("%s: gradient moved %v over a distance %v, smoothness %v", l.Name(), change, distance, l.Smoothness(x))
		}
	})
}

func TestConstantsAreAttained(t *testing.T) {
	e := convex.Example{Value: []float64{3, 4}, Label: 1}
	flat := gradient(convex.Logistic{}, []float64{-300, -400}, e)
	if n := convex.Norm(flat); math.Abs(n-5) > 1e-12 {
		t.Errorf("logistic: gradient norm %v far on the wrong side, want 5", n)
	}
	const h = 1e-6
	for _, l := range losses {
		ga := gradient(l, []float64{3 * h, 4 * h}, e)
		gb := gradient(l, []float64{0, 0}, e)
		if c := convex.Norm(minus(ga, gb)) / (5 * h); math.Abs(c/l.Smoothness(5)-1) > 1e-6 {
			t.Errorf("%s: curvature %v at the origin, want %v", l.Name(), c, l.Smoothness(5))
		}
	}
	if !math.IsInf(convex.Squared{}.Lipschitz(1), 1) || (convex.Squared{}).Lipschitz(0) != 0 {
		t.Error("squared: the Lipschitz constant must be +Inf for x > 0 and 0 for x = 0")
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
		l, dense, theta, _ := draw(t)
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
		s, d := gradient(l, theta, sparse), gradient(l, theta, dense)
		for i := range s {
			if s[i] != d[i] {
				t.Fatalf("gradient %v sparse, %v dense at %d", s[i], d[i], i)
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

func TestLabels(t *testing.T) {
	for _, y := range []float64{0, 2, math.NaN(), math.Inf(1)} {
		if (convex.Logistic{}).CheckLabel(y) == nil {
			t.Errorf("logistic: label %v accepted", y)
		}
	}
	for _, y := range []float64{math.NaN(), math.Inf(-1)} {
		if (convex.Squared{}).CheckLabel(y) == nil {
			t.Errorf("squared: label %v accepted", y)
		}
	}
}

func TestNewLoss(t *testing.T) {
	for _, want := range losses {
		got, err := convex.NewLoss(want.Name())
		if err != nil || got != want || got.Parameters(7) != 7 {
			t.Errorf("%s: got %v, %v", want.Name(), got, err)
		}
	}
	if _, err := convex.NewLoss("hinged"); err == nil || !strings.Contains(err.Error(), `"hinged"`) {
		t.Errorf("unknown name: error %v must name it", err)
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
