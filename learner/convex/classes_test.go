package convex_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestDenoisedLossIsUnbiased: Natarajan et al. 2013, Lemma 1: under the noise, the corrected loss of the seen
// label is the weighted loss of the true one on average; so is its gradient.
func TestDenoisedLossIsUnbiased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clean := convex.Logistic{}
		rho := rapid.Float64Range(0.001, 0.45).Draw(t, "rho")
		weights := []float64{1, rapid.Float64Range(0.9, 1.1).Draw(t, "weight")}
		l := given(convex.Declaration{Name: "logistic", LabelNoise: rho, ClassWeights: weights})
		theta, x := vectors(3, 3).Draw(t, "theta"), vectors(3, 3).Draw(t, "x")
		for i, y := range signs {
			e, flipped := convex.Example{Value: x, Label: y}, convex.Example{Value: x, Label: -y}
			got := (1-rho)*l.Value(theta, e) + rho*l.Value(theta, flipped)
			want := weights[i] * clean.Value(theta, e)
			if math.Abs(got-want) > 1e-12*size(want)/(1-2*rho) {
				t.Fatalf("%s, rho = %v, y = %v: %v on average, want %v", l.Name(), rho, y, got, want)
			}
			g := along(along(make([]float64, 3), gradient(l, theta, e), 1-rho), gradient(l, theta, flipped), rho)
			if d := convex.Norm(minus(g, along(make([]float64, 3), gradient(clean, theta, e), weights[i]))); d > 1e-12*size()/(1-2*rho) {
				t.Fatalf("%s, rho = %v, y = %v: mean gradient %v off", l.Name(), rho, y, d)
			}
		}
	})
}

func TestLabelNoiseRefuses(t *testing.T) {
	for _, rho := range []float64{-0.1, 0.5, 1, math.NaN()} {
		if _, err := (convex.Declaration{Name: "logistic", LabelNoise: rho}).New(); err == nil {
			t.Errorf("rho = %v accepted", rho)
		}
	}
	for _, d := range declared {
		if d.Name == "logistic" {
			continue
		}
		d.LabelNoise = 0.1
		if _, err := d.New(); err == nil || !strings.Contains(err.Error(), "not convex") {
			t.Errorf("%s: error %v must say why", d.Name, err)
		}
	}
	// (1-rho)/rho = 4: at a factor of 4 the corrected loss is linear, above it concave.
	for _, w := range [][]float64{{1, 4}, {5, 1}, {1}, {1, 1, 1}, {1, 0}, {1, -1}, {1, math.NaN()}, {1, math.Inf(1)}} {
		if _, err := (convex.Declaration{Name: "logistic", LabelNoise: 0.2, ClassWeights: w}).New(); err == nil {
			t.Errorf("weights %v accepted", w)
		}
	}
}

func TestWeights(t *testing.T) {
	x, theta := []float64{0.5, -2}, []float64{0.3, 0.7, -0.2, 0.1, 1, -1}
	for _, c := range []struct {
		loss    convex.Loss
		labels  []float64
		weights []float64
	}{
		{convex.Logistic{}, signs, []float64{0.5, 3}},
		{convex.Hinge{}, signs, []float64{4, 2}},
		{convex.Softmax{Classes: 3}, []float64{0, 1, 2}, []float64{1, 2, 3}},
		{bare{convex.Hinge{}}, signs, []float64{4, 2}},
		{struct{ convex.Loss }{convex.Hinge{}}, signs, []float64{4, 2}},
	} {
		l, err := convex.NewWeighted(c.loss, c.weights)
		if err != nil {
			t.Fatal(err)
		}
		at := theta[:l.Parameters(2)]
		for i, y := range c.labels {
			e := convex.Example{Value: x, Label: y}
			if v, want := l.Value(at, e), c.weights[i]*c.loss.Value(at, e); v != want {
				t.Errorf("%s, y = %v: value %v, want %v", l.Name(), y, v, want)
			}
			want := along(make([]float64, len(at)), gradient(c.loss, at, e), c.weights[i])
			if g := gradient(l, at, e); convex.Norm(minus(g, want)) > 1e-15 {
				t.Errorf("%s, y = %v: gradient %v, want %v", l.Name(), y, g, want)
			}
		}
		if _, is := c.loss.(convex.Proximal); is {
			if _, is := l.(convex.Proximal); !is {
				t.Errorf("%s: the weighted loss has no prox", l.Name())
			}
		} else if _, is := l.(convex.Proximal); is {
			t.Errorf("%s: the weighted loss has a prox, the loss has none", l.Name())
		}
		for _, y := range []float64{-2, 0.5, 3, math.NaN(), math.Inf(1)} {
			if l.CheckLabel(y) == nil {
				t.Errorf("%s: label %v accepted", l.Name(), y)
			}
		}
	}
}

func TestNewWeightedRefuses(t *testing.T) {
	soft := convex.Softmax{Classes: 3}
	for _, w := range [][]float64{nil, {1}, {1, 2}, {1, 2, 3, 4}, {1, 0, 1}, {1, -1, 1}, {1, math.NaN(), 1},
		{1, math.Inf(1), 1}} {
		if _, err := convex.NewWeighted(soft, w); err == nil {
			t.Errorf("softmax of 3 classes: weights %v accepted", w)
		}
		if _, err := convex.NewWeighted(convex.Hinge{}, w); err == nil && len(w) != 2 {
			t.Errorf("hinge: weights %v accepted", w)
		}
	}
	own := []float64{1, 2}
	l, err := convex.NewWeighted(convex.Hinge{}, own)
	if err != nil {
		t.Fatal(err)
	}
	if own[1] = 100; l.Lipschitz(1) != 2 {
		t.Errorf("the loss holds its caller's weights")
	}
}
