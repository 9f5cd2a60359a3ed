package isrl

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// exact returns the delta of Bin(n, p) shifted by k against unshifted, the worse direction, by the table of
// the law.
func exact(n, k int, p, eps float64) float64 {
	table := make([]float64, n+1)
	all, _ := math.Lgamma(float64(n) + 1)
	for i := range table {
		a, _ := math.Lgamma(float64(i) + 1)
		b, _ := math.Lgamma(float64(n-i) + 1)
		table[i] = math.Exp(all - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	var up, down float64
	for i := range n + 1 + k {
		var here, there float64
		if i <= n {
			here = table[i]
		}
		if i >= k {
			there = table[i-k]
		}
		up += math.Max(0, here-math.Exp(eps)*there)
		down += math.Max(0, there-math.Exp(eps)*here)
	}
	return math.Max(up, down)
}

// Check 13: the scalar sum, with the randomizer that runs, and its privacy.
func TestVectorSum_Scalar(t *testing.T) {
	s := vectorSum{inputs: 100, dim: 1, levels: 16, trials: 256, p: 0.25}
	near(t, "noise variance", 4/(s.levels*s.levels)*s.spread(), 75, 1e-12)
	near(t, "closed form", s.epsilon(1e-5), 1.74969, 1e-5)
	near(t, "delta(1)", exact(25600, 16, 0.25, 1), 7.4585e-7, 0.01)
	near(t, "delta(0.5)", exact(25600, 16, 0.25, 0.5), 1.6511e-3, 0.01)
	for _, eps := range []float64{0.5, 1} {
		d := one[float64](t)(accounting.Delta(eps, accounting.Mechanism{Trials: 25600, P: 0.25, Levels: 16,
			Dim: 1, Rounds: 1}))
		if truth := exact(25600, 16, 0.25, eps); !(d >= truth && d <= 2*truth) {
			t.Errorf("Theorem A has delta(%v) = %v, and the truth is %v", eps, d, truth)
		}
	}

	source := rand.New(rand.NewPCG(1, 2))
	encode := func(levels, trials uint32, p, x float64) func() uint64 {
		coin := one[randomizer.Coin](t)(randomizer.CoinFromFloat(p))
		v := one[*randomizer.VectorSum](t)(randomizer.NewVectorSum(randomizer.Params{Dim: 1, ClipNorm: 1, Levels: levels,
			Trials: trials, Coin: coin}, source))
		return func() uint64 { return uint64(one[[]uint32](t)(v.Encode(nil, []float64{x}))[0]) }
	}
	const draws = 40_000
	quiet, above := encode(16, 0, 0.25, 0.3), 0.0
	for range draws {
		switch quiet() {
		case 10:
		case 11:
			above++
		default:
			t.Fatal("0.3 is encoded as neither 10 nor 11")
		}
	}
	// Seven standard deviations: 3e-12 of false alarms.
	if got := above / draws; math.Abs(got-0.4) > 7*math.Sqrt(0.24/draws) {
		t.Errorf("0.3 is 11 with probability %v, want 0.4", got)
	}
	// Whatever g, b and p are, the sum is unbiased.
	for _, c := range []struct {
		levels, trials uint32
		p, x           float64
	}{{16, 256, 0.25, 0.3}, {5, 7, 1. / 8, -0.9}, {1, 3, 0.5, 0.123}, {1000, 0, 0.5, 1}} {
		noisy, total := encode(c.levels, c.trials, c.p, c.x), uint64(0)
		for range draws {
			total += noisy()
		}
		params := randomizer.Params{Dim: 1, ClipNorm: 1, Levels: c.levels, Trials: c.trials,
			Coin: one[randomizer.Coin](t)(randomizer.CoinFromFloat(c.p))}
		sum := one[[]float64](t)(params.Decode(nil, []uint64{total}, draws, draws*uint64(c.trials)))
		sd := 2 / float64(c.levels) * math.Sqrt((float64(c.trials)*c.p*(1-c.p)+0.25)/draws)
		if got := sum[0] / draws; math.Abs(got-c.x) > 7*sd+1e-6 {
			t.Errorf("%+v: the mean is %v", c, got)
		}
	}
}

// The sizing of the vector sum, and what Theorem 5.2 makes of it.
func TestVectorSum_Sizing(t *testing.T) {
	for _, c := range []struct{ m, d, eps, delta, g, b, v, err float64 }{
		{1000, 50, 1, 1e-5, 64, 789, 147937.5, 7235.72},
		{100, 10, 0.5, 1e-6, 20, 4350, 100 * 4350 * 3 / 16., 8158.75},
	} {
		s := one[vectorSum](t)(newVectorSum(c.m, c.d, c.eps, c.delta))
		if s.levels != c.g || s.trials != c.b {
			t.Errorf("g = %v, b = %v, want %v, %v", s.levels, s.trials, c.g, c.b)
		}
		near(t, "v", s.spread(), c.v, 1e-12)
		near(t, "error", s.meanSquare(), c.err, tight)
		if s.epsilon(c.delta) > c.eps {
			t.Errorf("epsilon %v, want at most %v", s.epsilon(c.delta), c.eps)
		}
	}
	for _, bad := range [][2]float64{{16, 1e-5}, {0, 1e-5}, {1, 0.5}, {1, 0}, {math.NaN(), 1e-5}} {
		if _, err := newVectorSum(100, 10, bad[0], bad[1]); err == nil {
			t.Errorf("epsilon %v, delta %v has a size", bad[0], bad[1])
		}
	}
	// K balances steps against privacy: a batch of another size makes the larger summand larger.
	f := example()
	k := summed{f}.batch()
	worse := func(k float64) float64 {
		return math.Max(f.Smoothness*math.Pow(f.Diameter*k/f.Records, 2),
			f.Lipschitz*f.Diameter*math.Sqrt(f.Dim)*math.Log(f.Dim/f.Delta)/(f.Epsilon*f.Available*math.Sqrt(k*f.Records)))
	}
	if !(worse(k) < worse(0.9*k) && worse(k) < worse(1.1*k)) {
		t.Errorf("K = %v does not balance", k)
	}
	noise := one[float64](t)(summed{f}.noise(20))
	s := one[vectorSum](t)(newVectorSum(500, 50, 1, 1e-5))
	near(t, "variance of the mean", summed{f}.variance(20, noise), s.meanSquare()/500/500, 1e-12)
}
