package accounting

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
)

// lawOf returns the truncated law of a rate and a size.
func lawOf(t testing.TB, rate float64, kappa int) randomizer.TruncatedLaplace {
	t.Helper()
	l, err := randomizer.LaplaceOfRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	r, err := randomizer.NewTruncatedLaplace(l, kappa)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// deletions returns the distance of what is left after s and t deletions, each of which moves it by at most 1.
func deletions(s, t int) float64 { return float64(s + t + 2) }

// TestDeletionNoise: the smallest Gaussian noise at delta 1e-6, by the law's rate and kappa, and the scores that
// decide.
func TestDeletionNoise(t *testing.T) {
	for _, c := range []struct {
		eps, rate   float64
		kappa, s, t int // no scores: 0
		want        float64
	}{
		{1, 0.5, 32, 33, 34, 526.8571}, {4, 2, 10, 10, 11, 51.01256}, {8, 4, 6, 6, 7, 17.89000},
		{1, 0.5, 25, 0, 0, 424.0370}, {4, 2, 7, 0, 0, 38.23949}, {8, 3.6, 4, 0, 0, 12.13303},
	} {
		at, below := lawOf(t, c.rate, c.kappa).Survival()
		sigma, err := DeletionNoise(Budget{Epsilon: c.eps, Delta: 1e-6}, at, below, deletions)
		if err != nil || math.Abs(sigma/c.want-1) > 1e-6 {
			t.Errorf("epsilon %v, law (%v, %d): %v, want %v: %v", c.eps, c.rate, c.kappa, sigma, c.want, err)
		}
		delta, from, to := DeletionProfile(c.eps, at, below,
			func(s, t int) Curve { return Curve{{mu: deletions(s, t) / sigma}} })
		if !(delta <= 1e-6 && delta > 1e-6*(1-1e-6)) {
			t.Errorf("epsilon %v: delta %v", c.eps, delta)
		}
		if c.s > 0 && (from != c.s || to != c.t) && (from != c.t || to != c.s) {
			t.Errorf("epsilon %v: scores %d and %d decide, want %d and %d", c.eps, from, to, c.s, c.t)
		}
	}
}

// TestDeletionsOnTheLattice: two percent more noise than the Gaussian's is enough on a lattice, rounding of the vector
// included, and two percent less is not.
func TestDeletionsOnTheLattice(t *testing.T) {
	at, below := lawOf(t, 0.5, 25).Survival()
	for _, c := range []struct {
		share float64
		ok    bool
	}{{1.02, true}, {0.98, false}} {
		const step = 10. // levels of one deletion
		sd := 424.0370 * step * c.share
		delta, _, _ := DeletionProfile(1, at, below, func(s, t int) Curve {
			const levels = 1 << 16
			m := Mechanism{Trials: uint64(4 * sd * sd), P: 0.5, Levels: levels, Dim: 10, Rounds: 1,
				Shift: randomizer.Shift(levels, step*deletions(s, t)/levels, 10)}
			curve, err := Compose(m)
			if err != nil {
				panic(err)
			}
			return curve
		})
		if (delta <= 1e-6) != c.ok {
			t.Errorf("%v of the noise: delta %v", c.share, delta)
		}
	}
}

// TestCalibrateDeletions: the search finds laws that are no noisier than the best that are known, and each is within
// the budget.
func TestCalibrateDeletions(t *testing.T) {
	distance := func(randomizer.TruncatedLaplace) func(s, t int) float64 { return deletions }
	for _, c := range []struct{ eps, most float64 }{{1, 424.0371}, {4, 38.2396}, {8, 12.1331}} {
		law, sigma, err := CalibrateDeletions(Budget{Epsilon: c.eps, Delta: 1e-6}, distance)
		if err != nil || sigma > c.most {
			t.Errorf("epsilon %v: noise %v of kappa %d and rate %v, want at most %v: %v", c.eps, sigma, law.Kappa(), law.Rate(),
				c.most, err)
		}
		t.Logf("epsilon %v: noise %v of kappa %d and rate %v", c.eps, sigma, law.Kappa(), law.Rate())
	}
	for _, b := range []Budget{{0, 1e-6}, {math.NaN(), 1e-6}, {1, 0}, {1, 1}, {61, 1e-6}} {
		if _, _, err := CalibrateDeletions(b, distance); err == nil {
			t.Errorf("budget %v is accepted", b)
		}
	}
	at, below := lawOf(t, 1, 3).Survival() // ends of one in fifty
	if _, err := DeletionNoise(Budget{1, 1e-6}, at, below, deletions); err == nil {
		t.Error("a law with heavy ends is accepted")
	}
	if delta, _, _ := DeletionProfile(1, nil, nil, nil); delta != 1 {
		t.Errorf("no law: delta %v", delta)
	}
}

// TestPaperDeletions: the paper's constants at delta 1e-6.
func TestPaperDeletions(t *testing.T) {
	for _, c := range []struct {
		eps   float64
		kappa int
		sigma float64
	}{{1, 32, 2878.42689}, {4, 10, 231.504315}, {8, 6, 73.0811508}} {
		kappa, sigma, err := PaperDeletions(Budget{Epsilon: c.eps, Delta: 1e-6})
		if err != nil || kappa != c.kappa || math.Abs(sigma/c.sigma-1) > 1e-8 {
			t.Errorf("epsilon %v: %d and %v, want %+v: %v", c.eps, kappa, sigma, c, err)
		}
	}
	if _, _, err := PaperDeletions(Budget{Epsilon: 0, Delta: 1e-6}); err == nil {
		t.Error("epsilon 0 is accepted")
	}
}

// TestLeastKappa: the end of the law has at most delta, and that of a smaller one more.
func TestLeastKappa(t *testing.T) {
	for _, rate := range []float64{0.1, 0.5, 2, 3.6} {
		for _, delta := range []float64{1e-3, 1e-6, 1e-12} {
			l, _ := randomizer.LaplaceOfRate(rate)
			end := func(kappa int) float64 {
				_, below := lawOf(t, rate, kappa).Survival()
				return below[1]
			}
			if k := LeastKappa(l, delta); end(k) > delta || float64(k-1)*rate > 1 && end(k-1) < delta {
				t.Errorf("rate %v, delta %v: kappa %d has %v, one less %v", rate, delta, k, end(k), end(k-1))
			}
		}
	}
}

// halting returns the hockey stick at e^eps of two laws that are p and q times those on the lattice, and one point
// otherwise.
func halting(p, q float64, law, other []float64, eps float64) float64 {
	c := math.Exp(eps)
	sum := max(0, 1-p-c*(1-q))
	for x, v := range law {
		sum += max(0, p*v-c*q*other[x])
	}
	return sum
}

// deletionAttack draws laws of deletions and lattices, and concrete neighbours as far apart as their scores allow;
// truth has the trials of the noise that is really there, and claimed is how far apart neighbours are said to be. It
// returns the closest exact divergence in terms of the bound.
func deletionAttack(t *testing.T, seed uint64, settings int, truth func(uint64) uint64,
	claimed func(s, t int) float64) float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	closest := 0.0
	for range settings {
		kappa := 1 + rng.IntN(4)
		law := lawOf(t, (1+4*rng.Float64())/float64(kappa), kappa)
		at, below := law.Survival()
		m := Mechanism{Trials: 2 * uint64(20+rng.IntN(4000)), P: 0.5, Levels: 400, Dim: 1, Rounds: 1}
		step := math.Sqrt(float64(m.Trials)) / 2 * (0.05 + rng.Float64()) / float64(4*kappa) // of one deletion
		curves := map[int]Curve{}
		release := func(s, t int) Curve {
			if c, ok := curves[s+t]; ok {
				return c
			}
			v := m
			v.Shift = min(step*claimed(s, t), 400)
			c, err := Compose(v)
			if err != nil {
				panic(err)
			}
			curves[s+t] = c
			return c
		}
		eps := 3*rng.Float64() - 0.5
		bound, worst, next := DeletionProfile(eps, at, below, release)
		noise := noiseLaw(truth(m.Trials), m.P)
		for i := range 12 {
			s := rng.IntN(2*kappa + 2)
			u := min(max(s+rng.IntN(3)-1, 0), 2*kappa+1)
			if i < 4 {
				s, u = worst, next
			}
			x := math.Floor(300*rng.Float64()) / 2
			y := x + min(step*deletions(s, u), 400-x)
			law, other := coordinateLaw(noise, x, m.Levels), coordinateLaw(noise, y, m.Levels)
			for _, exact := range []float64{halting(at[s], at[u], law, other, eps), halting(at[s], at[u], other, law, eps)} {
				least := max(0, -math.Expm1(eps)) // of any two laws
				if exact > bound*(1+1e-12) {
					closest = max(closest, exact/bound)
				} else if bound-least > 1e-9 {
					closest = max(closest, (exact-least)/(bound-least))
				}
			}
		}
	}
	return closest
}

// TestDeletionNeverBelowExactAttack: no concrete neighbours lose more than the profile says, and some nearly as much;
// with half of the noise, or the changed person forgotten among the deletions, some lose more.
func TestDeletionNeverBelowExactAttack(t *testing.T) {
	same := func(n uint64) uint64 { return n }
	got := deletionAttack(t, 1, 60*deepFactor(t, 20), same, deletions)
	t.Logf("closest exact/bound %.4f", got)
	if got > 1 || got < 0.97 {
		t.Errorf("closest exact/bound %v, want 0.97 to 1", got)
	}
	if got := deletionAttack(t, 1, 20, func(n uint64) uint64 { return n / 4 }, deletions); got <= 1 {
		t.Errorf("with half of the noise the closest is %v of the bound: not refuted", got)
	}
	if got := deletionAttack(t, 1, 20, same, func(s, t int) float64 { return float64(s + t + 1) }); got <= 1 {
		t.Errorf("with one deletion less the closest is %v of the bound: not refuted", got)
	}
}

// TestDeletionProfileIsAProbability: whatever epsilon is.
func TestDeletionProfileIsAProbability(t *testing.T) {
	at, below := lawOf(t, 1, 2).Survival()
	for _, eps := range []float64{-100, -1, 0, 1, 10, 100, math.Inf(1), math.Inf(-1), math.NaN()} {
		if d, _, _ := DeletionProfile(eps, at, below, func(s, t int) Curve { return Curve{{mu: 0.2}} }); !(d >= 0 && d <= 1) {
			t.Errorf("epsilon %v: delta %v", eps, d)
		}
	}
}
