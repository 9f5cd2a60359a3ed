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

// TestACSATrace: AC-SA of Ghadimi & Lan 2012 on F(w) = w^2/2 from 1 without noise, v = 2: the aggregates
// computed by hand.
func TestACSATrace(t *testing.T) {
	for _, c := range []struct {
		mu          float64
		want        []float64
		interactive bool
	}{
		{0, []float64{0.75, 0.5, 0.2734375}, false},
		{0.5, []float64{0.777777778, 0.589225589, 0.430370370}, false},
		{0, []float64{0.75, 0.5, 0.2734375}, true},
		{0.5, []float64{0.777777778, 0.589225589, 0.430370370}, true},
	} {
		p, err := method.NewPAGD(method.PAGDConfig{Dim: 1, Set: convex.Ball{R: 100}, Start: []float64{1}, Steps: 3, V: 2,
			Mu: c.mu, Interactive: c.interactive})
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

// TestPSGDTrace: PSGD on the same function, eta = 1/2: points 1, 1/2, 1/4, averaged.
func TestPSGDTrace(t *testing.T) {
	p, err := method.NewPSGD(method.PSGDConfig{Dim: 1, Set: convex.Ball{R: 100}, Start: []float64{1}, Steps: 3,
		StepSize: 0.5})
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

// TestProxTrace: Prox on the same function with lambda = 1, whose minimisers are at c/2: 1, 1/2, 1/4 are
// announced, and the model is the mean of the last two of the answers 1/2, 1/4, 1/8. An answer outside the set
// is projected for the next round, and is in the mean as it came.
func TestProxTrace(t *testing.T) {
	begin := func(steps, average uint64) learner.Algorithm {
		p, err := method.NewProx(method.ProxConfig{Dim: 1, Set: convex.Ball{R: 2}, Start: []float64{1}, Steps: steps,
			Average: average})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := begin(3, 2)
	for step, want := range []struct{ query, model float64 }{{1, 0.5}, {0.5, 0.25}, {0.25, 0.1875}} {
		if q := p.Query(); q.Step != uint64(step+1) || q.Point[0] != want.query {
			t.Errorf("step %d: query %+v, want %v", step+1, q, want.query)
		}
		answer(t, p, func(c []float64) []float64 { return []float64{-c[0] / 2} })
		if got := p.Model()[0]; got != want.model {
			t.Errorf("step %d: model %v, want %v", step+1, got, want.model)
		}
	}
	p = begin(2, 2)
	for _, move := range []float64{4, -1} { // to 5, and from 2 to 1
		answer(t, p, func([]float64) []float64 { return []float64{move} })
	}
	if got := p.Model()[0]; got != 2 { // 3 projected; of projected answers it would be 1.5
		t.Errorf("model %v, want 2", got)
	}
	p = begin(4, 2)
	answer(t, p, func([]float64) []float64 { return []float64{-0.5} })
	for range 2 { // the second of them is one of the rounds that are averaged
		if err := p.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	answer(t, p, func([]float64) []float64 { return []float64{-0.25} })
	if got := p.Model()[0]; got != 0.25 || !p.Done() {
		t.Errorf("model %v after void rounds, done %v: want the only answer of the last two rounds, 0.25", got, p.Done())
	}
}
