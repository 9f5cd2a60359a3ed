package isrl

import (
	"fmt"
	"math"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s: %.9g, want %.9g to %g", what, got, want, relative)
	}
}

func one[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// With q = 1 the pair is a Gaussian mechanism, of which everything is known exactly: the bounds hold it between
// them, and are close.
func TestSumsOfLossesHoldTheGaussian(t *testing.T) {
	for _, c := range []struct {
		m      float64
		rounds uint64
	}{{0.3, 16}, {0.03, 1000}, {0.01, 5000}, {1, 1}, {3, 1}, {0.2, 35}} {
		p, must := pair{1, c.m}, one[law](t)
		upper := must(must(p.symmetric(p.step())).sum(c.rounds))
		forth, back, err := p.laws(p.step() / math.Sqrt(math.Sqrt(float64(c.rounds))))
		if err != nil {
			t.Fatal(err)
		}
		forth, back = must(forth.sum(c.rounds)), must(back.sum(c.rounds))
		mu := c.m * math.Sqrt(float64(c.rounds))
		for _, delta := range []float64{0.1, 1e-3, 1e-5, 1e-7, 1e-9} {
			eps := one[float64](t)(accounting.GaussianEpsilon(mu, delta))
			if d := upper.delta(eps); !(d >= delta*(1-1e-8) && d <= delta*1.01+upper.lost) {
				t.Errorf("m=%v, %d rounds: delta(%.6g) is %.6g, at most %.6g", c.m, c.rounds, eps, delta, d)
			}
			for _, l := range []law{forth, back} {
				if d := l.least(eps); !(d <= delta*(1+1e-8) && d >= delta*0.98-2*l.lost) {
					t.Errorf("m=%v, %d rounds: delta(%.6g) is %.6g, at least %.6g", c.m, c.rounds, eps, delta, d)
				}
			}
		}
	}
	// Check 4: q=1, m=0.3, T=16 is one Gaussian of m = 1.2.
	near(t, "delta(1) at m = 1.2", one[float64](t)(gaussianDelta(1, 1.2)), 0.20148453, 1e-7)
}

// A loss that is without end with probability .1 a round, and 1 or -1 otherwise: in three rounds it is without end with
// probability 1 - .9^3 = .271, which is delta at epsilon 5, since three others add up to no more than 3.
func TestLossesWithoutEndAddUp(t *testing.T) {
	l := one[law](t)(law{step: 1, low: -1, mass: []float64{.45, 0, .45}, infinite: .1, short: .01, lost: .001}.sum(3))
	if d := l.delta(5); !(d >= .271 && d <= .3+.01) {
		t.Errorf("delta(5) is %v at most, want .271 to .31", d)
	}
	near(t, "what losses are short", l.short, .03, 1e-12)
	if !(l.lost >= .003) {
		t.Errorf("masses in doubt: %v, want those of three rounds", l.lost)
	}
}

// Losses beyond the last of the lattice, of normal points more than 9.5 standard deviations out, are without end: their
// mass is no share of the last loss.
func TestTailsAreLossesWithoutEnd(t *testing.T) {
	p := pair{1, 0.3} // the loss at x is 0.3 x - 0.045, and x ~ N(0.3, 1)
	l := one[law](t)(p.symmetric(p.step()))
	z := (float64(-l.low)*l.step+0.045)/0.3 - 0.3
	if tail := math.Erfc(z/math.Sqrt2) / 2; !(z >= 9.5 && z < 9.6 && l.infinite >= tail && l.infinite < 1.001*tail) {
		t.Errorf("losses without end: %v of %v beyond %v", l.infinite, tail, z)
	}
}

// One round by hand: at order a = 1 + q (b-1) the pair's divergence is q times that of the Gaussians at b.
func TestOneRoundOfSampling(t *testing.T) {
	for _, s := range []Sampled{{100, 10, 1, 0.2}, {1238, 443, 1, 0.003}, {1000, 1, 1, 5}} {
		q, m := float64(s.Batch)/float64(s.Records), s.shift()
		for _, eps := range []float64{0.01, 0.3, 1, 3} {
			want := q * one[float64](t)(gaussianDelta(math.Log1p(math.Expm1(eps)/q), m))
			got := one[Interval](t)(s.Delta(eps))
			if want < 1e-9 {
				continue
			}
			if !(got.Upper >= want*(1-1e-8) && got.Upper <= want*1.01 && got.Lower <= want*(1+1e-8) && got.Lower >= want*0.99) {
				t.Errorf("%+v: delta(%v) is %.6g, between %+v", s, eps, want, got)
			}
		}
	}
}

// Check 4, and what the paper's own experiments really cost.
func TestSampledEpsilon(t *testing.T) {
	mnist, insurance, obesity := 1/1238./1238., 1/134./134., 1/202./202.
	for _, c := range []struct {
		s            Sampled
		delta        float64
		lower, upper float64
		relative     float64
	}{
		{Sampled{1000, 10, 1000, 0.2}, 1e-5, 1.828, 2.199, 0.001},
		{Sampled{1238, 90, 35, 0.0680127}, mnist, 0.68, 0.70, 0.01},
		{Sampled{1238, 128, 35, 0.0340064}, mnist, 1.53, 1.60, 0.01},
		{Sampled{1238, 181, 35, 0.0170032}, mnist, 3.6, 3.8, 0.02},
		{Sampled{1238, 256, 35, 0.00850159}, mnist, 8.9, 9.4, 0.02},
		{Sampled{1238, 362, 35, 0.00425080}, mnist, 22, 23, 0.03},
		{Sampled{1238, 443, 35, 0.00283386}, mnist, 37, 39, 0.02},
		{Sampled{1238, 443, 35, 2 * 0.00283386}, mnist, 12.0, 12.5, 0.01}, // the gradients are half as long as the paper's L
		{Sampled{134, 19, 35, math.Sqrt(8*35*2*math.Log(134)) / 134 / 1}, insurance, 0.79, 0.82, 0.01},
		{Sampled{134, 19, 35, math.Sqrt(8*35*2*math.Log(134)) / 134 / 3}, insurance, 3.70, 3.96, 0.01},
		{Sampled{202, 30, 100, math.Sqrt(8*100*2*math.Log(202)) / 202 / 9}, obesity, 17.0, 19.0, 0.01},
	} {
		got := one[Interval](t)(c.s.Epsilon(c.delta))
		near(t, "lower", got.Lower, c.lower, c.relative)
		near(t, "upper", got.Upper, c.upper, c.relative)
	}
}

// Check 4: the least noise at n=1000, R=100, epsilon 1, delta 1e-5.
func TestSampledNoise(t *testing.T) {
	b := accounting.Budget{Epsilon: 1, Delta: 1e-5}
	for _, c := range []struct {
		batch           uint64
		noise, relative float64
	}{{6, 0.267, 0.003}, {50, 0.0912, 0.002}, {200, 0.0780, 0.002}, {1000, 0.0746126, 2e-6}} {
		s := Sampled{Records: 1000, Batch: c.batch, Rounds: 100}
		s.Noise = one[float64](t)(s.LeastNoise(b))
		near(t, "noise", s.Noise, c.noise, c.relative)
		if got := one[Interval](t)(s.Epsilon(b.Delta)); !(got.Upper <= b.Epsilon*(1+1e-6) && got.Lower <= got.Upper &&
			got.Upper > b.Epsilon*0.99) {
			t.Errorf("batch %d: %+v at the noise for epsilon 1", c.batch, got)
		}
	}
	near(t, "m*", one[float64](t)(accounting.GaussianMu(b)), 0.26805112, 1e-7)
}

// A batch with replacement: no pair of constant gradients, by numeric integration, is above the bound, and
// batches of one agree with the other sampling. The noise of Theorem 2.1 leaves such a round within its share
// of the budget.
func TestRedrawn(t *testing.T) {
	for _, c := range []struct {
		s   Sampled
		eps float64
	}{{Sampled{2, 2, 1, 1}, 0.5}, {Sampled{10, 4, 1, 0.3}, 1}, {Sampled{50, 50, 1, 0.05}, 0.2}} {
		k, q := float64(c.s.Batch), 1/float64(c.s.Records)
		var up, down float64
		const dx = 1e-3
		for x := -12.0; x < 12+k*c.s.shift(); x += dx {
			here, chance := math.Exp(-x*x/2), math.Pow(1-q, k)
			mixed := chance * here
			for i := 1.0; i <= k; i++ {
				chance *= (k - i + 1) / i * q / (1 - q)
				mixed += chance * math.Exp(-(x-i*c.s.shift())*(x-i*c.s.shift())/2)
			}
			up += math.Max(0, mixed-math.Exp(c.eps)*here) * dx / math.Sqrt(2*math.Pi)
			down += math.Max(0, here-math.Exp(c.eps)*mixed) * dx / math.Sqrt(2*math.Pi)
		}
		if d := one[float64](t)(c.s.redrawn(c.eps)); !(d >= math.Max(up, down)*(1-1e-6) && d <= 2*math.Max(up, down)) {
			t.Errorf("%+v: delta(%v) is %v or %v, at most %v", c.s, c.eps, up, down, d)
		}
	}
	s := Sampled{1000, 1, 1, 3}
	near(t, "batches of one", one[float64](t)(s.redrawn(0.1)), one[Interval](t)(s.Delta(0.1)).Upper, 0.01)
	for _, k := range []uint64{5, 6, 50, 443, 1000} {
		f := Federation{Records: 1000, Lipschitz: 1, Epsilon: 1, Delta: 1e-5}
		share := f.share(100)
		if d := one[float64](t)((Sampled{1000, k, 1, f.noise(100)}).redrawn(share.Epsilon)); !(d < share.Delta/20) {
			t.Errorf("K = %d: delta %v of a round, and its share is %v", k, d, share.Delta)
		}
	}
}

func TestSampledRefuses(t *testing.T) {
	for _, s := range []Sampled{{}, {10, 0, 1, 1}, {10, 11, 1, 1}, {10, 1, 0, 1}, {10, 1, 1, 0}, {10, 1, 1, math.NaN()},
		{10, 1, 1, math.Inf(1)}} {
		if _, err := s.Epsilon(1e-5); err == nil {
			t.Errorf("%+v has an epsilon", s)
		}
		if _, err := s.Delta(1); err == nil {
			t.Errorf("%+v has a delta", s)
		}
	}
	s := Sampled{10, 5, 1, 1}
	for _, delta := range []float64{0, 1, -1, 1e-12, math.NaN()} {
		if _, err := s.Epsilon(delta); err == nil {
			t.Errorf("epsilon at delta %v", delta)
		}
	}
	if _, err := s.Delta(math.NaN()); err == nil {
		t.Error("delta at epsilon NaN")
	}
	// Next to no noise: no finite epsilon is claimed, and nothing panics.
	if got, err := (Sampled{1000, 100, 10, 1e-6}).Epsilon(1e-5); err == nil && !math.IsInf(got.Upper, 1) {
		t.Errorf("epsilon %+v without noise", got)
	}
}

// redrawn bounds the delta at epsilon of one round whose batch is drawn with replacement, as Algorithm 2 is
// printed: the changed record is in it k times with binomial probability, and then moves the mean k times as far
// (Balle, Barthe and Gaboardi 2018, Theorem 10).
func (s Sampled) redrawn(epsilon float64) (float64, error) {
	if err := s.Validate(); err != nil {
		return 0, err
	}
	k, q := float64(s.Batch), 1/float64(s.Records)
	if s.Records == 1 { // the batch is that record, once
		return gaussianDelta(epsilon, s.shift())
	}
	hit := -math.Expm1(k * math.Log1p(-q)) // at least once
	inner := math.Log1p(math.Expm1(epsilon) / hit)
	var sum float64
	chance := 1 - hit
	for i := 1.0; i <= k; i++ {
		chance *= (k - i + 1) / i * q / (1 - q)
		d, err := gaussianDelta(inner, i*s.shift())
		if err != nil {
			return 0, err
		}
		sum += chance * d
	}
	return sum, nil
}

// Delta bounds the delta of all rounds together at epsilon, by the same laws as Epsilon.
func (s Sampled) Delta(epsilon float64) (Interval, error) {
	if err := s.Validate(); err != nil {
		return Interval{}, err
	}
	if !(epsilon >= 0) || math.IsInf(epsilon, 0) {
		return Interval{}, fmt.Errorf("epsilon: %v, want a finite number of at least 0", epsilon)
	}
	if s.Batch == s.Records {
		d, err := gaussianDelta(epsilon, s.shift()*math.Sqrt(float64(s.Rounds)))
		return Interval{d, d}, err
	}
	upper, lower, err := s.laws()
	if err != nil {
		return Interval{}, err
	}
	return Interval{lower(epsilon), upper.delta(epsilon)}, nil
}

// gaussianDelta returns the delta, at epsilon, of the Gaussian mechanism whose noise has standard deviation
// sensitivity/mu.
func gaussianDelta(epsilon, mu float64) (float64, error) {
	c, err := accounting.GaussianCurve(mu)
	return c.Delta(epsilon), err
}
