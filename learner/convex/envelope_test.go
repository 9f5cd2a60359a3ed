package convex_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// bare hides everything of a loss but what Proximal promises.
type bare struct{ convex.Proximal }

func TestEnvelopeIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := draw(t), drawSmoothing(t)
		f := envelope(t, s.loss, b)
		u := prox(s.loss, s.a, s.e, b)
		v, want := f.Value(s.a, s.e), objective(s.loss, u, s.a, s.e, b)
		if math.Abs(v-want) > 1e-12*size(v) {
			t.Fatalf("%s: envelope %v, objective at the prox %v", s.loss.Name(), v, want)
		}
		// theta - u has digits down to 2^-52 ||theta|| only.
		g := gradient(f, s.a, s.e)
		if d := convex.Norm(minus(g, along(make([]float64, len(u)), minus(s.a, u), b))); d > 1e-13*(convex.Norm(g)+b*size()) {
			t.Fatalf("%s: gradient %v away from b (theta - prox)", s.loss.Name(), d)
		}
		// f_b <= l <= f_b + L^2/(2b).
		own, gap := s.loss.Value(s.a, s.e), math.Pow(s.loss.Lipschitz(s.e.Norm()), 2)/(2*b)
		if own < v-1e-12*size(v) || own > v+gap*(1+1e-12)+1e-12*size(v) {
			t.Fatalf("%s: loss %v, envelope %v, at most %v below", s.loss.Name(), own, v, gap)
		}
	})
}

func TestEnvelopeOfAnyProximalLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := draw(t), drawSmoothing(t)
		fast, slow := envelope(t, s.loss, b), envelope(t, bare{s.loss}, b)
		v, w := fast.Value(s.a, s.e), slow.Value(s.a, s.e)
		if math.Abs(v-w) > 1e-12*size(v) {
			t.Fatalf("%s: envelope %v, by the prox %v", s.loss.Name(), v, w)
		}
		g := gradient(fast, s.a, s.e)
		if d := convex.Norm(minus(g, gradient(slow, s.a, s.e))); d > 1e-13*(convex.Norm(g)+b*size()) {
			t.Fatalf("%s: gradients %v apart", s.loss.Name(), d)
		}
	})
}

// TestEnvelopesInClosedForm: the checks of the specification: the envelopes of the absolute and of the hinge
// loss are Huber's and the smoothed hinge loss.
func TestEnvelopesInClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawSmoothing(t)
		z, y := rapid.Float64Range(-5, 5).Draw(t, "z"), rapid.Float64Range(-5, 5).Draw(t, "y")
		absolute, hinge := envelope(t, convex.Absolute{}, b), envelope(t, convex.Hinge{}, b)
		e, positive := convex.Example{Value: []float64{1}, Label: y}, convex.Example{Value: []float64{1}, Label: 1}
		cut := func(v, low, high float64) float64 { return math.Min(math.Max(v, low), high) }
		if g, want := gradient(absolute, []float64{z}, e)[0], cut(b*(z-y), -1, 1); math.Abs(g-want) > 1e-14 {
			t.Fatalf("|z - y|: gradient %v, want %v", g, want)
		}
		if g, want := gradient(hinge, []float64{z}, positive)[0], -cut(b*(1-z), 0, 1); math.Abs(g-want) > 1e-14 {
			t.Fatalf("max(0, 1-z): gradient %v, want %v", g, want)
		}
		huber, smoothed := given(convex.Declaration{Name: "huber", Width: 1 / b}),
			given(convex.Declaration{Name: "smoothed-hinge", Width: 1 / b})
		if v, want := absolute.Value([]float64{z}, e), b*huber.Value([]float64{z}, e); math.Abs(v-want) > 1e-12*(1+want) {
			t.Fatalf("|z - y|: envelope %v, want %v", v, want)
		}
		if v, want := hinge.Value([]float64{z}, positive), smoothed.Value([]float64{z},
			positive); math.Abs(v-want) > 1e-12*(1+want) {
			t.Fatalf("max(0, 1-z): envelope %v, want %v", v, want)
		}
	})
}

func TestEnvelopeKeepsItsDigits(t *testing.T) {
	// At b = 1e30 the prox of theta is theta to the last digit, and the envelope's gradient still is the loss's.
	e, theta := convex.Example{Value: []float64{1, 2}, Label: 1}, []float64{0.3, -0.2}
	for _, l := range []convex.Loss{convex.Logistic{}, convex.Softmax{Classes: 2}, convex.Squared{},
		given(convex.Declaration{Name: "poisson", ScoreBound: 3})} {
		at := append(append([]float64(nil), theta...), 0.1, 0.7)[:l.Parameters(2)]
		g := gradient(envelope(t, l, 1e30), at, e)
		if d := convex.Norm(minus(g, gradient(l, at, e))); d > 1e-14 {
			t.Errorf("%s: gradient %v away from the loss's", l.Name(), d)
		}
	}
}

func TestEnvelopeSmoothness(t *testing.T) {
	if s := envelope(t, convex.Squared{}, 10).Smoothness(1); math.Abs(s-1/(1+0.1)) > 1e-15 {
		t.Errorf("squared: smoothness %v, want 1/(1/1 + 1/10)", s)
	}
	if s := envelope(t, convex.Hinge{}, 10).Smoothness(1); s != 10 {
		t.Errorf("hinge: smoothness %v, want b = 10", s)
	}
	if s := envelope(t, convex.Hinge{}, 10).Smoothness(0); s != 0 {
		t.Errorf("hinge without features: smoothness %v, want 0", s)
	}
}

func TestNewEnvelopeRefuses(t *testing.T) {
	for _, b := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := convex.NewEnvelope(convex.Hinge{}, b); err == nil {
			t.Errorf("b = %v accepted", b)
		}
	}
	type closed struct{ convex.Loss }
	if _, err := convex.NewEnvelope(closed{convex.Hinge{}}, 1); err == nil || !strings.Contains(err.Error(), "hinge") {
		t.Errorf("a loss without a prox: error %v must name it", err)
	}
}
