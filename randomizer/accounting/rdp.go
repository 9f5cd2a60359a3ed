package accounting

import (
	"fmt"
	"math"
	"slices"
)

// renyiOrders are the orders at which curves are kept: 2 to 64, then a few.
var renyiOrders = func() []int {
	var of []int
	for a := 2; a <= 64; a++ {
		of = append(of, a)
	}
	return append(of, 80, 96, 128, 256)
}()

// RenyiOrders returns the integer orders of a Renyi curve.
func RenyiOrders() []int { return slices.Clone(renyiOrders) }

// Renyi bounds from above, at each of RenyiOrders, the Renyi divergences of the laws of an output on two neighbouring
// data sets, in nats and in either direction. Curves of adaptive releases add up (docs/proofs/resque.md, "Renyi
// curves").
type Renyi []float64

// NewRenyi returns the curve of no release.
func NewRenyi() Renyi { return make(Renyi, len(renyiOrders)) }

// Plus returns the curve of r and of so many releases of one more curve.
func (r Renyi) Plus(times float64, of Renyi) Renyi {
	out := slices.Clone(r)
	for i, e := range of {
		out[i] = (out[i] + times*e) * (1 + 1e-14) // the factor covers the rounding of a sum
	}
	return out
}

// Delta bounds the delta at eps from above: min over orders a of exp((a-1)(r_a - eps)) (1-1/a)^a / (a-1), at most 1.
func (r Renyi) Delta(eps float64) float64 {
	best := 0.0
	for i, order := range renyiOrders {
		a := float64(order)
		best = min(best, (a-1)*(r[i]-eps)+(a-1)*math.Log1p(-1/a)-math.Log(a))
	}
	return min(1, max(math.Exp(best)*(1+1e-9), 1e-298))
}

// Epsilon returns the smallest epsilon at which the same bound is delta, and the order that shows it.
func (r Renyi) Epsilon(delta float64) (eps float64, order int) {
	eps = math.Inf(1)
	for i, o := range renyiOrders {
		a := float64(o)
		if e := r[i] + math.Log1p(-1/a) - (math.Log(delta)+math.Log(a))/(a-1); e < eps {
			eps, order = e, o
		}
	}
	return max(0, eps+1e-9), order
}

// SampledGaussian returns the curve of a Gaussian release to which one record, present or absent, contributes with
// probability q, and then moves its mean by mu standard deviations (docs/proofs/resque.md, Lemma P). It bounds both
// directions.
//
//	r_a = log( 1 + sum_{k=2}^{a} C(a,k) (1-q)^(a-k) q^k (exp(k(k-1) mu^2/2) - 1) ) / (a-1)
//
// A q outside of [0, 1], or a mu below 0, is a bug and panics.
func SampledGaussian(q, mu float64) Renyi {
	if !(q >= 0 && q <= 1) || !(mu >= 0) {
		panic(fmt.Sprintf("accounting: sampling rate %v, mu %v", q, mu))
	}
	out := NewRenyi()
	if q == 0 || mu == 0 {
		return out
	}
	keep, take := math.Log1p(-q), math.Log(q)
	moment := make([]float64, renyiOrders[len(renyiOrders)-1]+1)
	for k := 2; k < len(moment); k++ {
		moment[k] = logExpm1(float64(k) * float64(k-1) * mu * mu / 2)
	}
	var terms []float64
	for i, a := range renyiOrders {
		terms = terms[:0]
		for k := 2; k <= a; k++ {
			rest := 0.0 // 0 log 0 at q = 1
			if k < a {
				rest = float64(a-k) * keep
			}
			terms = append(terms, choose(a, k)+rest+float64(k)*take+moment[k])
		}
		out[i] = log1pExp(logSumExp(terms)) / float64(a-1) * (1 + 1e-9)
	}
	return out
}

// GaussianShift returns the largest shift, in levels, such that positions that far apart on the lattice, with
// Bin(trials, 1/2) in each of dim coordinates, are dominated by a Gaussian pair with parameter mu, and the slack of
// that: the total variation, at most slack, up to which either law is the one that is dominated
// (docs/proofs/theorem-a.md, the shift theorem). It refuses what has no positive shift.
func GaussianShift(trials uint64, dim int, mu, slack float64) (shift, used float64, err error) {
	if _, err := checkNoise(trials, 0.5); err != nil {
		return 0, 0, err
	}
	if dim < 1 || dim >= maxCount || !(mu > 0) || math.IsInf(mu, 1) || !(slack > 0) {
		return 0, 0, fmt.Errorf("shift: dimension %d, mu %v, slack %v: want all above 0", dim, mu, slack)
	}
	for _, l := range profiles.of(depth{affordable(binomial{n: int64(trials), k: fairCoin}), rungs}, newProfile).levels {
		tau := float64(dim) * l.tau * (1 + 1e-12)
		if tau > slack {
			continue
		}
		lo, hi := 0.0, 1.0
		for l.muShift(hi, dim) <= mu && hi < maxCount {
			lo, hi = hi, 2*hi
		}
		for range 60 {
			if mid := (lo + hi) / 2; l.muShift(mid, dim) <= mu {
				lo = mid
			} else {
				hi = mid
			}
		}
		if lo > shift {
			shift, used = lo, tau
		}
	}
	if shift == 0 {
		return 0, 0, fmt.Errorf("shift: %d trials have no window with slack %v in %d coordinates for mu %v", trials, slack,
			dim, mu)
	}
	return shift, used, nil
}

// logFactorial holds logarithms of factorials, up to the last order's.
var logFactorial = func() []float64 {
	f := make([]float64, renyiOrders[len(renyiOrders)-1]+1)
	for n := 2; n < len(f); n++ {
		f[n] = f[n-1] + math.Log(float64(n))
	}
	return f
}()

func choose(n, k int) float64 { return logFactorial[n] - logFactorial[k] - logFactorial[n-k] }

// logSumExp returns the logarithm of the sum of exponentials. It leaves out those below exp(-60) of the largest: of 256
// they are less than 1e-23 of the sum, and callers multiply by 1 + 1e-9.
func logSumExp(x []float64) float64 {
	m := slices.Max(x)
	if math.IsInf(m, 0) {
		return m
	}
	var s float64
	for _, v := range x {
		if v -= m; v > -60 {
			s += math.Exp(v)
		}
	}
	return m + math.Log(s)
}

// log1pExp returns log(1 + e^x).
func log1pExp(x float64) float64 {
	if x > 30 {
		return x + 1e-13
	}
	return math.Log1p(math.Exp(x))
}

// logExpm1 returns log(e^x - 1).
func logExpm1(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log(math.Expm1(x))
}
