package convex_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func TestFrameByHand(t *testing.T) {
	f := convex.Frame{Center: []float64{1, -1}, Scale: []float64{2, 0.5}, Intercept: 0.25, Bound: 100, Clip: 1}
	dense := convex.Example{Value: []float64{3, 0, 7}, Label: 1}
	sparse := convex.Example{Index: []int32{0, 2}, Value: []float64{3, 7}, Label: 1}
	u := convex.Example{Index: []int32{5}, Value: make([]float64, 9)}
	for _, x := range []convex.Example{dense, sparse} {
		f.Apply(&u, x)
		if !slices.Equal(u.Value, []float64{4, 0.5, 0.25}) || u.Index != nil || u.Label != 1 {
			t.Errorf("u = %v, index %v, label %v", u.Value, u.Index, u.Label)
		}
	}
	f.Bound = 2
	f.Apply(&u, dense)
	if n := convex.Norm(u.Value[:2]); math.Abs(n-2) > 1e-15 || n > 2 || math.Abs(u.Value[0]/u.Value[1]-8) > 1e-12 ||
		u.Value[2] != 0.25 {
		t.Errorf("cut to norm 2: %v of norm %v", u.Value, n)
	}
	// theta = (1, 2, 3): 1*2*(x0-1) + 2*0.5*(x1+1) + 3*0.25 = 2 x0 + x1 - 0.25, and the plain intercept is 0.5.
	theta := []float64{1, 2, 3, 0, 0, 1}
	if got := f.Fold(theta, 0.5); !slices.Equal(got, []float64{2, 1, -0.5, 0, 0, 0.5}) {
		t.Errorf("folded: %v", got)
	}
	w := []float64{1, 2, 3, 4, 5, 6} // the symmetric matrix (1 2 4; 2 3 5; 4 5 6)
	f.Whitener = w
	got := make([]float64, 3)
	if f.Whiten(got, []float64{1, 10, 100}); !slices.Equal(got, []float64{421, 532, 654}) {
		t.Errorf("whitened: %v", got)
	}
	f.Whitener = nil
	if f.Whiten(got, []float64{1, 10, 100}); !slices.Equal(got, []float64{1, 10, 100}) {
		t.Errorf("without a whitener: %v", got)
	}
}

func drawFrame(t *rapid.T, features int, intercept bool) convex.Frame {
	f := convex.Frame{Center: make([]float64, features), Scale: make([]float64, features), Bound: 1e6, Clip: 1}
	for j := range f.Scale {
		f.Scale[j] = rapid.Float64Range(0.1, 10).Draw(t, "scale")
		if intercept {
			f.Center[j] = rapid.Float64Range(-3, 3).Draw(t, "center")
		}
	}
	if intercept {
		f.Intercept = rapid.Float64Range(0.1, 3).Draw(t, "intercept")
	}
	return f
}

// TestFoldKeepsScores: the folded model gives a row the score that theta gives its u, and Unfold goes back.
func TestFoldKeepsScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		features, blocks := rapid.IntRange(1, 5).Draw(t, "features"), rapid.IntRange(1, 3).Draw(t, "blocks")
		intercept := rapid.Bool().Draw(t, "intercept")
		f := drawFrame(t, features, intercept)
		if err := f.Check(features, intercept); err != nil {
			t.Fatal(err)
		}
		n, plain := f.Dim(), rapid.Float64Range(0.1, 2).Draw(t, "plain intercept")
		theta := vectors(n*blocks, 10).Draw(t, "theta")
		x := convex.Example{Value: vectors(n, 10).Draw(t, "x")}
		if intercept {
			x.Value[features] = plain
		}
		var u convex.Example
		f.Apply(&u, x)
		model := f.Fold(theta, plain)
		for b := range blocks {
			got, want := x.Dot(model[b*n:(b+1)*n]), u.Dot(theta[b*n:(b+1)*n])
			if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Errorf("block %d: score %v folded, %v in the frame", b, got, want)
			}
		}
		for j, v := range f.Unfold(model, plain) {
			if math.Abs(v-theta[j]) > 1e-9*(1+math.Abs(theta[j]))*1e3 {
				t.Errorf("unfolded %d: %v, want %v", j, v, theta[j])
			}
		}
	})
}

// TestFrameRidge compares the ridge's gradient with differences of a quadratic, which are exact apart from
// rounding.
func TestFrameRidge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		intercept := rapid.Bool().Draw(t, "intercept")
		f := drawFrame(t, 3, intercept)
		plain, lambda := rapid.Float64Range(0.3, 2).Draw(t, "plain intercept"), 0.7
		theta := vectors(2*f.Dim(), 3).Draw(t, "theta")
		value := func() float64 {
			n := convex.Norm(f.Fold(theta, plain))
			return lambda / 2 * n * n
		}
		got := make([]float64, len(theta))
		f.Ridge(got, theta, lambda, plain)
		top := value()
		for j, v := range theta {
			const h = 0.5
			theta[j] = v + h
			up := value()
			theta[j] = v - h
			want := (up - value()) / (2 * h)
			theta[j] = v
			if math.Abs(got[j]-want) > 1e-8*(1+math.Abs(want)+top) {
				t.Errorf("coordinate %d: %v, want %v", j, got[j], want)
			}
		}
	})
}

func TestFrameRefuses(t *testing.T) {
	good := func() *convex.Frame {
		return &convex.Frame{Center: []float64{1, 2}, Scale: []float64{1, 2}, Intercept: 1, Bound: 1, Clip: 1,
			Whitener:   make([]float64, 6),
			LabelScale: 1, LabelWeight: 1}
	}
	if err := good().Check(2, true); err != nil {
		t.Fatal(err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for want, spoil := range map[string][]func(f *convex.Frame){
		"center": {func(f *convex.Frame) { f.Center = nil }, func(f *convex.Frame) { f.Center[1] = nan },
			func(f *convex.Frame) { f.Center[0] = -inf }},
		"scale 1": {func(f *convex.Frame) { f.Scale[1] = 0 }, func(f *convex.Frame) { f.Scale[1] = nan },
			func(f *convex.Frame) { f.Scale[1] = 1e13 }},
		"scale: 1": {func(f *convex.Frame) { f.Scale = f.Scale[:1] }},
		"intercept": {func(f *convex.Frame) { f.Intercept = 0 }, func(f *convex.Frame) { f.Intercept = -1 },
			func(f *convex.Frame) { f.Intercept = nan }},
		"bound": {func(f *convex.Frame) { f.Bound = 0 }, func(f *convex.Frame) { f.Bound = inf }},
		"clip": {func(f *convex.Frame) { f.Clip = 0 }, func(f *convex.Frame) { f.Clip = nan },
			func(f *convex.Frame) { f.Clip = inf }},
		"smoothing": {func(f *convex.Frame) { f.Smoothing = -1 }, func(f *convex.Frame) { f.Smoothing = nan }},
		"whitener": {func(f *convex.Frame) { f.Whitener = make([]float64, 3) },
			func(f *convex.Frame) { f.Whitener[5] = nan }},
		"label cent":  {func(f *convex.Frame) { f.LabelCenter = nan }},
		"label scale": {func(f *convex.Frame) { f.LabelScale = 0 }},
		"label weigh": {func(f *convex.Frame) { f.LabelWeight = inf }},
	} {
		for i, s := range spoil {
			f := good()
			s(f)
			if err := f.Check(2, true); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, case %d: %v", want, i, err)
			}
		}
	}
	plain := convex.Frame{Center: []float64{0}, Scale: []float64{1}, Bound: 1, Clip: 1}
	if err := plain.Check(1, false); err != nil {
		t.Error(err)
	}
	plain.Center[0] = 1
	if plain.Check(1, false) == nil {
		t.Error("a center without an intercept was accepted")
	}
}

func TestApplyTakesAnyRow(t *testing.T) {
	f := convex.Frame{Center: []float64{0}, Scale: []float64{1e12}, Intercept: 1, Bound: 3, Clip: 1}
	var u convex.Example
	for _, v := range []float64{math.MaxFloat64, math.Inf(-1), math.NaN(), 0, 1e-300} {
		if f.Apply(&u, convex.Example{Value: []float64{v, 1}}); !(convex.Norm(u.Value[:1]) <= 3) || u.Value[1] != 1 {
			t.Errorf("a row of %v: %v", v, u.Value)
		}
	}
}

// TestSmoothingGap: no loss is further above its smoothed form than the gap, and those with corners are so far, where
// slopes are the largest; slopes of the two forms agree with SlopeOf.
func TestSmoothingGap(t *testing.T) {
	// half of c times the square of the largest slope, and the weight
	want := map[string]float64{"absolute": 1, "hinge": 1, "quantile": 0.81}
	for _, d := range []convex.Declaration{{Name: "absolute"}, {Name: "hinge"}, {Name: "quantile", Level: 0.9},
		{Name: "hinge", ClassWeights: []float64{0.5, 3}}, {Name: "hinge", ClassWeights: []float64{0.25, 0.5}}} {
		for _, c := range []float64{0.01, 2} {
			l := given(d)
			smooth, err := convex.Smoothed(l, c)
			if err != nil {
				t.Fatal(err)
			}
			gap, weight := 0.0, 1.0
			if d.ClassWeights != nil {
				weight = d.ClassWeights[1]
			}
			for s := -30.0; s <= 30; s += 1. / 64 {
				for _, y := range []float64{-1, 1} {
					e := convex.Example{Value: []float64{1}, Label: y}
					gap = max(gap, l.Value([]float64{s}, e)-smooth.Value([]float64{s}, e))
					g := []float64{0}
					smooth.Gradient(g, []float64{s}, e)
					if p := convex.SlopeOf(smooth)(s, y); p != g[0] {
						t.Fatalf("%+v: slope %v, gradient %v", d, p, g[0])
					}
				}
			}
			bound := convex.SmoothingGap(l, c)
			if exact := weight * want[d.Name] * c / 2; math.Abs(bound/exact-1) > 1e-12 || math.Abs(gap/exact-1) > 1e-9 {
				t.Errorf("%+v, c = %v: gap %v, bound %v, want %v", d, c, gap, bound, exact)
			}
		}
	}
	if gap := convex.SmoothingGap(convex.Squared{}, 1); !math.IsInf(gap, 1) {
		t.Errorf("squared: gap %v, want none", gap)
	}
}

// TestSmoothed: smoothing by c is the Moreau envelope with b = ||x||^2/c, for every loss of one score; weights
// multiply it.
func TestSmoothed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(declared).Draw(t, "loss")
		c := rapid.Float64Range(0.01, 5).Draw(t, "c")
		l, err := convex.Smoothed(given(d.Declaration), c)
		if d.Name == "softmax" {
			if err == nil {
				t.Fatal("softmax was smoothed")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := l.(convex.Proximal); ok && d.ClassWeights == nil {
			t.Fatal("a smoothed loss keeps the prox of the loss itself")
		}
		weight, plain := 1.0, d.Declaration
		e := convex.Example{Value: vectors(3, 2).Draw(t, "x"), Label: rapid.SampledFrom(d.labels).Draw(t, "label")}
		if d.ClassWeights != nil && d.LabelNoise == 0 {
			weight, plain.ClassWeights = d.ClassWeights[int(e.Label+1)/2], nil
		}
		x := e.Norm()
		if x < 0.1 {
			return
		}
		want := envelope(t, given(plain), x*x/c)
		theta := vectors(3, 3).Draw(t, "theta")
		if got, want := l.Value(theta, e), weight*want.Value(theta, e); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
			t.Errorf("value %v, want %v", got, want)
		}
		got, other := make([]float64, 3), make([]float64, 3)
		l.Gradient(got, theta, e)
		want.Gradient(other, theta, e)
		for j := range got {
			if math.Abs(got[j]-weight*other[j]) > 1e-9*(1+math.Abs(other[j])) {
				t.Errorf("gradient %v, want %v times %v", got, weight, other)
			}
		}
		if s, bound := l.Smoothness(2), l.Lipschitz(2); !(s <= 4/c*3.0001) || bound != given(d.Declaration).Lipschitz(2) {
			t.Errorf("smoothness %v, Lipschitz constant %v", s, bound)
		}
	})
	if l, err := convex.Smoothed(convex.Hinge{}, 0); err != nil || l != (convex.Hinge{}) {
		t.Errorf("smoothed by 0: %v, %v", l, err)
	}
	for _, c := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := convex.Smoothed(convex.Hinge{}, c); err == nil {
			t.Errorf("smoothed by %v: no error", c)
		}
	}
	// By hand: absolute loss smoothed by 2 at residual 1 has slope 1/2, and is 1/4; beyond residual 2 the slope is 1.
	l, _ := convex.Smoothed(convex.Absolute{}, 2)
	for r, want := range map[float64][2]float64{1: {0.5, 0.25}, 3: {1, 2}} {
		g := []float64{0}
		e := convex.Example{Value: []float64{1}}
		l.Gradient(g, []float64{r}, e)
		if v := l.Value([]float64{r}, e); v != want[1] || g[0] != want[0] {
			t.Errorf("residual %v: slope %v, value %v, want %v", r, g[0], v, want)
		}
	}
}
