package accounting

import (
	"math"
	"math/rand/v2"
	"slices"
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

// TestCurveLeavesOutNoPoint compares Delta and Near, bit by bit, with what all points of the curve give: a point that
// is not evaluated is never the best.
func TestCurveLeavesOutNoPoint(t *testing.T) {
	all := func(c Curve, eps, scale float64) (delta, near float64, at int) {
		delta, near = 1, math.Inf(1)
		charge := (1 + math.Exp(eps)) * (1 + 1e-12)
		for i, pt := range c {
			delta = min(delta, gaussianDelta(eps, pt.mu*scale)+charge*pt.slack)
			if d := gaussianDelta(eps, pt.mu) + (1+math.Exp(eps))*pt.slack; d < near {
				near, at = d, i
			}
		}
		return delta, near, at
	}
	rng, inside := rand.New(rand.NewPCG(32, 0)), 0
	for range 200 {
		m := Mechanism{Trials: 1 + uint64(math.Exp(14*rng.Float64())), P: float64(1+rng.IntN(1<<23)) / (1 << 24),
			Levels: 1 + rng.IntN(60), Dim: 1 + rng.IntN(100), Rounds: 1 + rng.IntN(9)}
		c, err := Compose(m)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			eps, scale := math.Exp(4*rng.NormFloat64()), math.Exp(2*rng.NormFloat64())
			if rng.IntN(4) == 0 {
				eps = 0
			}
			delta, _, at := all(c, eps, scale)
			if got := c.scaledDelta(eps, scale); got != delta {
				t.Fatalf("%+v, epsilon %v, scale %v: %v, of all points %v", m, eps, scale, got, delta)
			}
			near := c.Near(eps)
			if from := max(0, at-6); len(c) > 0 && (near[0] != c[from] || len(near) != min(len(c), at+7)-from) {
				t.Fatalf("%+v, epsilon %v: %d points from %v on, want those around %d", m, eps, len(near), near[0], at)
			}
			if delta < 1 && at > 0 && at < len(c)-1 {
				inside++
			}
		}
	}
	if inside < 500 {
		t.Errorf("the best point is neither the first nor the last in %d cases: the others prove little", inside)
	}
}

// TestFirstRungsAreThose compares, bit by bit, the levels of a law down to a rung with the first of all its levels, and
// what searches find with a part of every curve with what they find with all of it.
func TestFirstRungsAreThose(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 0))
	for range 300 {
		law := binomial{n: 1 + int64(math.Exp(12*rng.Float64())), k: 1 + rng.Int64N(fairCoin)}
		whole, most := newProfile(depth{law, rungs}).levels, 1+rng.IntN(rungs)
		first := newProfile(depth{law, most}).levels
		n := len(whole)
		for n > 0 && whole[n-1].rung >= most {
			n--
		}
		if !slices.Equal(first, whole[:n]) {
			t.Fatalf("%+v to rung %d: %d levels, of all %d the first are others", law, most, len(first), len(whole))
		}
	}
	trusts, part := []Trust{Shuffle, ShufflePan, Pan, Split, Local}, 0
	for i := range 40 {
		q := Request{Users: uint64(math.Exp(4 + 4*rng.Float64())), Dim: 1 + rng.IntN(100),
			Epsilon: math.Exp(2*rng.Float64() - 1), Delta: math.Pow(10, -3-5*rng.Float64()), HonestFraction: One,
			Rounds: 1 + rng.IntN(4), Trust: trusts[i%len(trusts)]}
		s, whole := newSearch(q), newSearch(q)
		whole.rungs = rungs
		g := 1 + rng.IntN(12)
		got, ok := s.smallestUnit(g)
		want, also := whole.smallestUnit(g)
		if ok && also {
			got, want = s.finish(got), whole.finish(want)
		}
		if got != want || ok != also {
			t.Errorf("%+v: %+v, with whole curves %+v", q, got, want)
		}
		if ok && len(s.curves(got)[0]) < len(whole.curves(got)[0]) {
			part++
		}
	}
	if part < 20 {
		t.Errorf("%d of 40 searches had a part of the curve: the others prove nothing", part)
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
