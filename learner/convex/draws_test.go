package convex_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// labelled is a declaration of a loss and labels of it.
type labelled struct {
	convex.Declaration
	labels []float64
}

// declared has every loss, and every wrapper around one, with the labels of their extremes.
var declared = []labelled{
	{convex.Declaration{Name: "logistic"}, signs},
	{convex.Declaration{Name: "softmax", Classes: 2}, []float64{0, 1}},
	{convex.Declaration{Name: "softmax", Classes: 5}, []float64{0, 4}},
	{convex.Declaration{Name: "squared"}, []float64{-5, 5}},
	{convex.Declaration{Name: "huber", Width: 0.7}, []float64{-5, 5}},
	{convex.Declaration{Name: "absolute"}, []float64{-5, 5}},
	{convex.Declaration{Name: "quantile", Level: 0.9}, []float64{-5, 5}},
	{convex.Declaration{Name: "hinge"}, signs},
	{convex.Declaration{Name: "smoothed-hinge", Width: 0.4}, signs},
	{convex.Declaration{Name: "poisson", ScoreBound: 2, MaxCount: 20}, []float64{0, 20}},
	{convex.Declaration{Name: "poisson", ScoreBound: 4, MaxCount: 20}, []float64{0, 20}},
	{convex.Declaration{Name: "logistic", ClassWeights: []float64{0.25, 3}}, signs},
	{convex.Declaration{Name: "hinge", ClassWeights: []float64{2, 0.5}}, signs},
	{convex.Declaration{Name: "smoothed-hinge", Width: 1, ClassWeights: []float64{2, 0.5}}, signs},
	{convex.Declaration{Name: "softmax", Classes: 3, ClassWeights: []float64{2, 1, 0.5}}, []float64{0, 1, 2}},
	{convex.Declaration{Name: "logistic", LabelNoise: 0.2}, signs},
	{convex.Declaration{Name: "logistic", LabelNoise: 0.2, ClassWeights: []float64{0.5, 1.5}}, signs},
}

var signs = []float64{-1, 1}

// given returns a loss that is known to be good.
func given(d convex.Declaration) convex.Loss {
	l, err := d.New()
	if err != nil {
		panic(err)
	}
	return l
}

func declare(t interface{ Fatal(...any) }, d convex.Declaration) convex.Proximal {
	l, err := d.New()
	if err != nil {
		t.Fatal(err)
	}
	return l.(convex.Proximal)
}

func envelope(t interface{ Fatal(...any) }, l convex.Loss, b float64) convex.Loss {
	f, err := convex.NewEnvelope(l, b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func vectors(dim int, bound float64) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.Float64Range(-bound, bound), dim, dim)
}

// A scene is a loss, an example of moderate size, and two points.
type scene struct {
	loss convex.Proximal
	e    convex.Example
	a, b []float64

	smoothing float64 // of the envelope that was drawn, 0 for none
}

func draw(t *rapid.T) scene { return drawOf(t, declared) }

// drawOf draws a scene of one of these losses.
func drawOf(t *rapid.T, losses []labelled) scene {
	d := rapid.SampledFrom(losses).Draw(t, "loss")
	s := scene{loss: declare(t, d.Declaration)}
	if d.Name == "absolute" && rapid.Bool().Draw(t, "own") { // a loss from outside of the package has the same duties
		s.loss = Deadzone{W: 0.5}
	}
	dim := rapid.IntRange(1, 6).Draw(t, "dim")
	s.e.Value = vectors(dim, 3).Draw(t, "x")
	s.e.Label = rapid.SampledFrom(d.labels).Draw(t, "extreme label")
	for _, y := range []float64{
		float64(rapid.IntRange(0, 20).Draw(t, "whole label")), rapid.Float64Range(-5, 5).Draw(t, "label"),
	} {
		if s.loss.CheckLabel(y) == nil {
			s.e.Label = y
		}
	}
	if err := s.e.Validate(dim); err != nil {
		t.Fatal(err)
	}
	if err := s.loss.CheckLabel(s.e.Label); err != nil {
		t.Fatal(err)
	}
	n := s.loss.Parameters(dim)
	s.a, s.b = vectors(n, 3).Draw(t, "a"), vectors(n, 3).Draw(t, "b")
	return s
}

func drawSmoothing(t *rapid.T) float64 {
	return math.Pow(10, rapid.Float64Range(-3, 4).Draw(t, "log10 b"))
}

// drawLoss also draws envelopes.
func drawLoss(t *rapid.T) (convex.Loss, scene) {
	s := draw(t)
	if rapid.Bool().Draw(t, "envelope") {
		s.smoothing = drawSmoothing(t)
		return envelope(t, s.loss, s.smoothing), s
	}
	return s.loss, s
}

func gradient(l convex.Loss, theta []float64, e convex.Example) []float64 {
	g := make([]float64, len(theta))
	for i := range g {
		g[i] = math.NaN() // Gradient must overwrite
	}
	l.Gradient(g, theta, e)
	return g
}

func prox(l convex.Proximal, theta []float64, e convex.Example, b float64) []float64 {
	u := make([]float64, len(theta))
	for i := range u {
		u[i] = math.NaN() // Prox must overwrite
	}
	l.Prox(u, theta, e, b)
	return u
}

func dot(a, b []float64) float64 { return convex.Example{Value: a}.Dot(b) }

func minus(a, b []float64) []float64 { return along(a, b, -1) }

// along returns a + t d.
func along(a, d []float64, t float64) []float64 {
	s := append([]float64(nil), a...)
	for i := range s {
		s[i] += t * d[i]
	}
	return s
}

func same(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestDeclarationsAreDistinct(t *testing.T) {
	for _, d := range declared {
		l := declare(t, d.Declaration)
		if l.Name() != d.Name {
			t.Errorf("%+v: name %q", d.Declaration, l.Name())
		}
		for _, y := range d.labels {
			if err := l.CheckLabel(y); err != nil {
				t.Errorf("%+v: %v", d.Declaration, err)
			}
		}
	}
}
