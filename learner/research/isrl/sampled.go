package isrl

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Sampled describes the reports of one silo: in each of Rounds rounds the mean over Batch of Records
// gradients, a fresh draw without replacement, with Gaussian noise.
type Sampled struct {
	Records, Batch, Rounds uint64
	// Noise is sigma of one coordinate, in units of the norm that no record's gradient exceeds. (Where records are
	// clipped to L that is L. A loss whose gradients are shorter by themselves has less to hide.)
	Noise float64
}

// An Interval holds a number between two bounds, up to the rounding of floating point, for which both are widened.
type Interval struct {
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Validate names the first field that is out of range.
func (s Sampled) Validate() error {
	switch {
	case s.Records < 1 || s.Records > 1<<40:
		return fmt.Errorf("records: %d, want 1 to 2^40", s.Records)
	case s.Batch < 1 || s.Batch > s.Records:
		return fmt.Errorf("batch: %d, want 1 to the records (%d)", s.Batch, s.Records)
	case s.Rounds < 1 || s.Rounds > 1<<32:
		return fmt.Errorf("rounds: %d, want 1 to 2^32", s.Rounds)
	case !(s.Noise > 0) || math.IsInf(s.Noise, 0):
		return fmt.Errorf("noise: %v, want a finite number above 0", s.Noise)
	}
	return nil
}

// shift returns by how much the changed record moves a mean in which it is, in standard deviations: m = 2/(K
// sigma).
func (s Sampled) shift() float64 { return 2 / (float64(s.Batch) * s.Noise) }

// Epsilon bounds the epsilon of all rounds together at delta. The upper bound is +Inf above accounting.MaxEpsilon.
//
// With P = (1-q) N(0,1) + q N(m,1), Q = N(0,1) and q = K/n, the hockey-stick divergence of order a >= 1 between
// neighbours is at most that of (P, Q), in both directions: amplification of subsets drawn without replacement
// (Balle, Barthe and Gaboardi 2018, Theorem 9, with neighbours that replace a record). Below 1 it is at most 1 - a
// + a h(1/a), by exchanging the two. So the symmetric pair with this profile dominates each round whatever came
// before, and its privacy losses are added up (Zhu, Dong and Wang 2022). The lower bound is the larger one of the
// pairs (P, Q) and (Q, P) themselves: two data sets of constant gradients that differ in one record attain them.
func (s Sampled) Epsilon(delta float64) (Interval, error) {
	if err := s.Validate(); err != nil {
		return Interval{}, err
	}
	if err := validateDelta(delta); err != nil {
		return Interval{}, err
	}
	if s.Batch == s.Records {
		e, err := accounting.GaussianEpsilon(s.shift()*math.Sqrt(float64(s.Rounds)), delta)
		return Interval{e, e}, err
	}
	upper, lower, err := s.laws()
	if err != nil {
		return Interval{}, err
	}
	out := Interval{Upper: math.Inf(1)}
	if _, hi := bisect(upper.delta, delta); upper.delta(hi) <= delta {
		out.Upper = hi
	}
	out.Lower, _ = bisect(lower, delta)
	return out, nil
}

// LeastNoise returns the least noise, to a thousandth, with which the rounds of s (whose Noise is ignored)
// were evaluated to be within the budget: minibatches in many passes, whatever conditions a theorem has.
func (s Sampled) LeastNoise(b accounting.Budget) (float64, error) {
	if err := validateDelta(b.Delta); err != nil {
		return 0, err
	}
	mu, err := accounting.GaussianMu(b)
	if err != nil {
		return 0, err
	}
	s.Noise = 1
	if err := s.Validate(); err != nil {
		return 0, err
	}
	// Without the help of sampling this is enough.
	hi := s.shift() * math.Sqrt(float64(s.Rounds)) / mu
	if s.Batch == s.Records {
		return hi, nil
	}
	enough := func(noise float64) (bool, error) {
		s.Noise = noise
		law, err := s.upper()
		return err == nil && law.delta(b.Epsilon) <= b.Delta, err
	}
	lo := hi
	for {
		lo /= 2
		ok, err := enough(lo)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		hi = lo
	}
	for hi > lo*1.001 {
		mid := math.Sqrt(lo * hi)
		ok, err := enough(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, nil
}

// bisect brackets where a falling function crosses delta: at or below hi it is not above, unless hi is
// accounting.MaxEpsilon.
func bisect(f func(float64) float64, delta float64) (lo, hi float64) {
	if f(0) <= delta {
		return 0, 0
	}
	hi = accounting.MaxEpsilon
	for hi-lo > 1e-6*hi {
		if mid := (lo + hi) / 2; f(mid) <= delta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, hi
}

// leastDelta is the smallest delta for which the rounding of the transforms is negligible.
const leastDelta = 1e-10

func validateDelta(delta float64) error {
	if !(delta >= leastDelta && delta < 1) {
		return fmt.Errorf("delta: %v, want a number from %v to 1: the transforms are no finer", delta, leastDelta)
	}
	return nil
}
