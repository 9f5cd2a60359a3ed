package accounting

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
)

// TestCurveAtEveryEpsilon: exact attacks in either order stay below the curve at negative epsilons, too, and come
// close: of what is above 1 - e^eps, which any pair has.
func TestCurveAtEveryEpsilon(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	shape := minimisers(blocks(shapes(1, 1, 3, 40)))
	closest := 0.0
	for range 60 {
		m := shape(rng)
		c, err := Compose(m)
		if err != nil {
			t.Fatal(err)
		}
		noise := noiseLaw(m.Trials, m.P)
		for range 6 {
			x, y := pairOf(rng, m)
			p, q := [][]float64{coordinateLaw(noise, x[0], m.Levels)}, [][]float64{coordinateLaw(noise, y[0], m.Levels)}
			eps := 3*rng.Float64() - 2
			bound, least := c.Delta(eps), max(0, -math.Expm1(eps))
			for _, exact := range []float64{hockeyStick(p, q, eps), hockeyStick(q, p, eps)} {
				if exact > bound*(1+1e-12) {
					t.Fatalf("%+v at epsilon %v: %v, want at most %v", m, eps, exact, bound)
				}
				if eps < 0 && exact > least+1e-9 {
					closest = max(closest, (exact-least)/(bound-least))
				}
			}
		}
	}
	if closest < 0.98 {
		t.Errorf("closest %v of the bound: the search has no power", closest)
	}
}

// TestGaussianCurve: the curve of one Gaussian is its profile, for every real epsilon.
func TestGaussianCurve(t *testing.T) {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, mu := range []float64{0.1, 1, 5} {
		c, err := GaussianCurve(mu)
		if err != nil {
			t.Fatal(err)
		}
		for eps := -4.0; eps <= 4; eps += 0.25 {
			exact := phi(mu/2-eps/mu) - math.Exp(eps)*phi(-mu/2-eps/mu)
			if got := c.Delta(eps); got < exact-1e-15 || got > exact*(1+1e-8)+1e-15 {
				t.Errorf("mu %v, epsilon %v: %v, want %v", mu, eps, got, exact)
			}
		}
	}
	still, err := GaussianCurve(0)
	if err != nil || still.Delta(0) > 1e-290 || math.Abs(still.Delta(-1)-(1-math.Exp(-1))) > 1e-11 {
		t.Errorf("mu 0: %v and %v: %v", still.Delta(0), still.Delta(-1), err)
	}
	for _, eps := range []float64{math.NaN(), math.Inf(-1), -1000} {
		if got := still.Delta(eps); got != 1 {
			t.Errorf("epsilon %v: %v, want 1", eps, got)
		}
	}
	for _, mu := range []float64{-1, math.NaN()} {
		if _, err := GaussianCurve(mu); err == nil {
			t.Errorf("mu %v is accepted", mu)
		}
	}
	if got := Curve(nil).Delta(1); got != 1 {
		t.Errorf("the empty curve promises %v", got)
	}
}

// TestCurveGrowsWithTheShift: further apart and more rounds never cost less; half of a unit's distance costs what
// twice the units do.
func TestCurveGrowsWithTheShift(t *testing.T) {
	m := Mechanism{Trials: 1 << 20, P: 0.5, Levels: 1 << 10, Dim: 10, Rounds: 1}
	delta := func(m Mechanism, eps float64) float64 {
		c, err := Compose(m)
		if err != nil {
			t.Fatal(err)
		}
		return c.Delta(eps)
	}
	for _, eps := range []float64{-1, 0, 1, 3} {
		last := 0.0
		for _, ratio := range []float64{0, 0.01, 0.05, 0.2, 0.5, 1} {
			m.Shift = randomizer.Shift(m.Levels, ratio, m.Dim)
			more := m
			more.Rounds = 2
			got := delta(m, eps)
			if got < last || delta(more, eps) < got {
				t.Errorf("epsilon %v, ratio %v: %v after %v, twice %v", eps, ratio, got, last, delta(more, eps))
			}
			last = got
		}
	}
	if _, err := Compose(); err == nil {
		t.Error("a curve of nothing")
	}
}

// TestGaussianNoise: the smallest noise at delta 1e-6 for a sensitivity of 1.
func TestGaussianNoise(t *testing.T) {
	for _, c := range []struct{ eps, sigma float64 }{{0.5, 8.0576185}, {1, 4.2246789}, {4, 1.1935186}, {8, 0.6529354}} {
		if mu, err := GaussianMu(Budget{Epsilon: c.eps, Delta: 1e-6}); err != nil || math.Abs(1/(mu*c.sigma)-1) > 1e-7 {
			t.Errorf("epsilon %v: %v, want %v: %v", c.eps, 1/mu, c.sigma, err)
		}
	}
}
