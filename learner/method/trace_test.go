package method_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// answer gives an algorithm the exact gradient.
func answer(t testing.TB, a learner.Algorithm, gradient func(theta []float64) []float64) {
	t.Helper()
	if err := a.Step(method.Estimate{Gradient: gradient(a.Query().Point), Users: 1}); err != nil {
		t.Fatal(err)
	}
}

// AC-SA of Ghadimi & Lan 2012 on F(w) = w^2/2 from 1 without noise, v = 2: the aggregates computed by hand.
func TestACSATrace(t *testing.T) {
	for _, c := range []struct {
		mu   float64
		want []float64
	}{
		{0, []float64{0.75, 0.5, 0.2734375}},
		{0.5, []float64{0.777777778, 0.589225589, 0.430370370}},
	} {
		p, err := method.NewPAGD(method.PAGDConfig{Dim: 1, Set: convex.Ball{R: 100}, Start: []float64{1}, Steps: 3, V: 2, Mu: c.mu})
		if err != nil {
			t.Fatal(err)
		}
		if q := p.Query(); q.Step != 1 || q.Point[0] != 1 {
			t.Errorf("mu = %v: first query %+v, want the start (alpha_1 = 1)", c.mu, q)
		}
		for step, want := range c.want {
			answer(t, p, func(theta []float64) []float64 { return theta })
			if got := p.Model()[0]; math.Abs(got-want) > 5e-10 {
				t.Errorf("mu = %v, step %d: aggregate %v, want %v", c.mu, step+1, got, want)
			}
		}
		if !p.Done() {
			t.Errorf("mu = %v: not done after 3 of 3 steps", c.mu)
		}
	}
}

// PSGD on the same function, eta = 1/2: points 1, 1/2, 1/4, averaged.
func TestPSGDTrace(t *testing.T) {
	p, err := method.NewPSGD(method.PSGDConfig{Dim: 1, Set: convex.Ball{R: 100}, Start: []float64{1}, Steps: 3, StepSize: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range []struct{ query, model float64 }{{1, 1}, {0.5, 0.75}, {0.25, 1.75 / 3}} {
		if q := p.Query(); q.Step != uint64(step+1) || q.Point[0] != want.query {
			t.Errorf("step %d: query %+v, want %v", step+1, q, want.query)
		}
		answer(t, p, func(theta []float64) []float64 { return theta })
		if got := p.Model()[0]; math.Abs(got-want.model) > 1e-15 {
			t.Errorf("step %d: average %v, want %v", step+1, got, want.model)
		}
	}
	if !p.Done() {
		t.Error("not done after 3 of 3 steps")
	}
}
