package accounting

import (
	"math"
	"math/big"
	"testing"
)

// TestTableAgainstRationals compares pmf and both tails with exact rationals. The
// margins of docs/proofs/theorem-a.md, section 7, allow 5e-13.
func TestTableAgainstRationals(t *testing.T) {
	const allowed = 2e-13
	worst := 0.0
	note := func(c struct{ n, k int64 }, x int64, what string, got float64, want *big.Float) {
		e := relative(got, want)
		if e > allowed {
			t.Errorf("n=%d k=%d x=%d: %s = %.17g misses by %.2g", c.n, c.k, x, what, got, e)
		}
		worst = math.Max(worst, e)
	}
	for _, c := range []struct{ n, k int64 }{
		{1, 1 << 23}, {2, 1}, {5, 7654321}, {15, 1 << 22}, {16, 3 << 22}, {17, 1 << 23}, {40, 1<<24 - 1},
		{100, 12345678}, {400, 1 << 23}, {1000, 1 << 16}, {1000, 1 << 21}, {3000, 1 << 23}, {3000, 5033165},
	} {
		b := binomial{c.n, c.k}
		tab := newTable(b)
		// Integer weights C(n, x) k^x (2^24-k)^(n-x); their sum is 2^(24 n).
		weights := make([]*big.Int, c.n+1)
		q := big.NewInt(1<<coinBits - c.k)
		w := new(big.Int).Exp(q, big.NewInt(c.n), nil)
		for x := range weights {
			weights[x] = new(big.Int).Set(w)
			w.Mul(w, big.NewInt((c.n-int64(x))*c.k))
			w.Quo(w, new(big.Int).Mul(big.NewInt(int64(x)+1), q))
		}
		total := new(big.Int).Lsh(big.NewInt(1), uint(coinBits*c.n))
		ratio := func(v *big.Int) *big.Float {
			return bigNew().Quo(bigNew().SetInt(v), bigNew().SetInt(total))
		}
		below := new(big.Int)
		for x := int64(0); x <= c.n; x++ {
			i := x - tab.first
			if i >= 0 && i < int64(len(tab.q)) {
				note(c, x, "pmf", tab.q[i], ratio(weights[x]))
				if f, _ := ratio(below).Float64(); f > 1e-50 {
					note(c, x, "F", tab.below[i], ratio(below))
				}
				above := new(big.Int).Sub(total, below)
				if s, _ := ratio(above).Float64(); s > 1e-50 {
					note(c, x, "S", tab.above[i], ratio(above))
				}
			} else if v, _ := ratio(weights[x]).Float64(); v > tableFloor {
				t.Errorf("n=%d k=%d: x=%d of mass %v is outside the table", c.n, c.k, x, v)
			}
			below.Add(below, weights[x])
		}
	}
	t.Logf("worst relative error %.2g", worst)
}

// TestWideTable checks the sums where rationals are out of reach: everything adds
// up to 1 and the integer difference x - Np is exact at 2^37 trials.
func TestWideTable(t *testing.T) {
	for _, b := range []binomial{{1 << 28, 1 << 23}, {1<<29 - 1, 1 << 12}, {1 << 33, 1 << 18}} {
		tab := newTable(b)
		size := len(tab.q)
		for _, sum := range []float64{tab.below[size], tab.above[0]} {
			if math.Abs(sum-1) > 2e-13 {
				t.Errorf("%+v: total %.17g", b, sum)
			}
		}
	}
}

// TestTailQuantile inverts Q by 640-bit arithmetic: z is off by less than what a
// relative error of 1e-15 in the tail explains.
func TestTailQuantile(t *testing.T) {
	for _, s := range []float64{0.5, 0.4999, 0.3, 0.1, 0.0749, 1e-2, 1e-4, 1e-7, 1e-11, 1e-12, 1e-20, 1e-30, 1e-45} {
		z := tailQuantile(s)
		if s == 0.5 {
			if math.Abs(z) > 1e-16 {
				t.Errorf("quantile of 1/2 is %v", z)
			}
			continue
		}
		// The float64 nearest to the true quantile misses s by z^2 2^-53.
		if e := relative(s, bigUpperTail(bigF(z))); e > 1e-15*(1+z*z) {
			t.Errorf("Q(%v) misses %v by %.2g", z, s, e)
		}
	}
}

func TestLogUpperTail(t *testing.T) {
	for _, z := range []float64{-30, -5, -1e-9, 0, 0.5, 3, 14, 24.9, 25, 25.1, 26} {
		want, _ := bigUpperTail(bigF(z)).Float64()
		if got := logUpperTail(z); math.Abs(got-math.Log(want)) > 4e-16*(1+z*z) {
			t.Errorf("ln Q(%v) = %.17g, want %.17g", z, got, math.Log(want))
		}
	}
	// Far out only the asymptotic series knows: Q ~ phi/z (1 - 1/z^2).
	if got, want := logUpperTail(1e6), -5e11-math.Log(1e6)-math.Log(2*math.Pi)/2; math.Abs(got-want) > 1e-3 {
		t.Errorf("ln Q(1e6) = %v, want %v", got, want)
	}
}

// TestGaussianDelta: never below the 640-bit value of Balle and Wang's formula,
// and hardly above it.
func TestGaussianDelta(t *testing.T) {
	for _, mu := range []float64{2e-5, 1e-3, 0.02, 0.2367, 1, 3, 8, 20} {
		for _, scale := range []float64{0, 1e-3, 0.5, 1, 3, 6, 9, 13} {
			eps := scale * mu
			exact := bigGaussianDelta(eps, mu)
			got := gaussianDelta(eps, mu)
			if bigF(got).Cmp(exact) < 0 {
				e, _ := exact.Float64()
				t.Errorf("deltaG(%v, %v) = %.17g, below the exact %.17g", eps, mu, got, e)
			}
			allowed := 2e-9
			if mu < 1e-2 {
				allowed = 2e-12 / mu * (1 + scale*scale)
			}
			if e := relative(got, exact); e > allowed {
				t.Errorf("deltaG(%v, %v) is %.2g above, want at most %.2g", eps, mu, e, allowed)
			}
		}
	}
}

// TestPaperGaussianComparison is docs/proofs/theorem-a.md, section 5: the closed form
// sqrt(2 ln(2/delta))/eps wastes noise at small epsilon and fails at 16.
func TestPaperGaussianComparison(t *testing.T) {
	const delta = 1e-6
	for _, c := range []struct{ eps, ratio float64 }{
		{0.1, 1.484}, {0.5, 1.337}, {1, 1.275}, {2, 1.208}, {4, 1.128}, {8, 1.031}, {16, 0.913},
	} {
		mu, err := GaussianMu(Budget{Epsilon: c.eps, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		if got := math.Sqrt(2*math.Log(2/delta)) / c.eps * mu; math.Abs(got-c.ratio) > 6e-4 {
			t.Errorf("epsilon %v: paper over analytic = %.4f, want %.3f", c.eps, got, c.ratio)
		}
		if d := gaussianDelta(c.eps, mu); d > delta {
			t.Errorf("epsilon %v: delta at the returned mu is %v", c.eps, d)
		}
		if e := smallestEpsilon(func(eps float64) bool { return gaussianDelta(eps, mu) <= delta }); math.Abs(
			e/c.eps-1) > 1e-6 {
			t.Errorf("epsilon %v comes back as %v", c.eps, e)
		}
	}
	if d := gaussianDelta(16, 16/math.Sqrt(2*math.Log(2/delta))); math.Abs(d/2.0e-5-1) > 0.02 {
		t.Errorf("the closed form at epsilon 16 has delta %v, want 2.0e-5", d)
	}
}
