package acsa

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestTraces: the iterates of Ghadimi and Lan 2012, by hand, for x^2 and x^2/2 from 1.
func TestTraces(t *testing.T) {
	for _, c := range []struct {
		mu, phi, slope float64
		want           map[int]float64
	}{
		{2, 2, 2, map[int]float64{1: 0.66666667, 2: 0.48888889, 3: 0.36944444, 5: 0.23143791}},
		{0.5, 4, 1, map[int]float64{1: 0.88235294, 2: 0.75851393, 3: 0.63029868, 5: 0.41037885, 10: 0.12425157}},
	} {
		a := New(c.mu, c.phi, nil, []float64{1})
		for n := 1; n <= 10; n++ {
			a.Step([]float64{c.slope * a.Query()[0]})
			if want, ok := c.want[n]; ok && math.Abs(a.aggregate[0]-want) > 1e-6*want {
				t.Errorf("mu %v: after %d steps %v, want %v", c.mu, n, a.aggregate[0], want)
			}
		}
	}
}

// TestGap: the bound of Proposition 9 without noise, on a quadratic of ten curvatures from 0.1 to 10.
func TestGap(t *testing.T) {
	const d, steps = 10, 40
	curve, start := make([]float64, d), make([]float64, d)
	for j := range curve {
		curve[j], start[j] = 0.1*math.Pow(100, float64(j)/(d-1)), 1
	}
	a := New(0.1, 10, nil, start)
	g := make([]float64, d)
	for range steps {
		for j, x := range a.Query() {
			g[j] = curve[j] * x
		}
		a.Step(g)
	}
	var gap float64
	for j, x := range a.aggregate {
		gap += curve[j] * x * x / 2
	}
	if bound := 2 * 10 * d / float64(steps*(steps+1)); math.Abs(gap-0.01041) > 5e-6 || math.Abs(bound-0.12195) > 5e-6 ||
		gap > bound {
		t.Errorf("gap %v, bound %v: want 0.01041 and 0.12195", gap, bound)
	}
}

// TestQueriesAreMeans: a query is a mean, so that it lies in the set, and stages begin at the aggregate.
func TestQueriesAreMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mu, phi := rapid.Float64Range(1e-6, 1).Draw(t, "mu"), rapid.Float64Range(1, 1e6).Draw(t, "phi")
		a := New(mu, phi, convex.Ball{R: 1}, []float64{0.5, 0.5})
		for n := range rapid.IntRange(1, 20).Draw(t, "steps") {
			alpha, gamma := a.shares()
			last, point := queryWeights(alpha, gamma, mu)
			if last < 0 || point < 0 || math.Abs(last+point-1) > 1e-12 {
				t.Fatalf("weights %v and %v", last, point)
			}
			if n%7 == 6 {
				a.Restart()
			}
			a.Query()
			a.Step([]float64{rapid.Float64Range(-9, 9).Draw(t, "g"), 1})
			if !a.set.Contains(a.middle) || !a.set.Contains(a.x) || convex.Norm(a.aggregate) > 1+1e-12 {
				t.Fatal("outside of the set")
			}
		}
	})
}

// TestWeights: those of the first queries, at strong convexity 10 and smoothness 20.
func TestWeights(t *testing.T) {
	a := New(10, 20, nil, []float64{1})
	for step, want := range [][2]float64{{0, 1}, {0.411765, 0.588235}, {0.588235, 0.411765}} {
		alpha, gamma := a.shares()
		if last, point := queryWeights(alpha, gamma, 10); math.Abs(last-want[0]) > 1e-6 || math.Abs(point-want[1]) > 1e-6 {
			t.Errorf("step %d: weights %v and %v, want %v", step+1, last, point, want)
		}
		a.Query()
		a.Step([]float64{0})
	}
}
