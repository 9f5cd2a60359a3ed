package accounting

import (
	"fmt"
	"math"
)

// MaxEpsilon is the largest epsilon that is searched for. A guarantee above it is
// reported as none (+Inf).
const MaxEpsilon = 60

// gaussianDelta bounds from above
//
//	deltaG(eps, mu) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)
//
// (Balle and Wang 2018, Theorem 8) as Q(a) (1 - exp(eps + ln Q(c) - ln Q(a))) with
// a = eps/mu - mu/2 and c = eps/mu + mu/2. The plain difference loses every digit
// for small mu. The exponent's own rounding is at most a few units of the last
// place of eps + c^2; it is moved against us.
func gaussianDelta(eps, mu float64) float64 {
	if mu <= 0 {
		return 0
	}
	if math.IsInf(mu, 1) {
		return 1
	}
	t := eps / mu
	a, c := t-mu/2, t+mu/2
	if a > 37 {
		return 1e-298 // Q(37) < 6e-300
	}
	x := eps + logUpperTail(c) - logUpperTail(a) - 1e-15*(1+eps+c*c)
	d := upperTail(a) * -math.Expm1(x) * (1 + 1e-9)
	if !(d < 1) {
		return 1
	}
	return math.Max(d, 1e-298)
}

// GaussianDelta returns an upper bound on the delta at eps of the Gaussian
// mechanism with mu = sensitivity / standard deviation (Balle and Wang 2018).
func GaussianDelta(eps, mu float64) (float64, error) {
	if err := checkEpsilon(eps); err != nil {
		return 0, err
	}
	if !(mu > 0) || math.IsInf(mu, 1) {
		return 0, fmt.Errorf("mu %v: want a positive finite number", mu)
	}
	return gaussianDelta(eps, mu), nil
}

// GaussianMu returns a mu, largest up to the last digits, at which the Gaussian
// mechanism was evaluated to be (eps, delta) private: its noise has standard
// deviation sensitivity/mu.
func GaussianMu(eps, delta float64) (float64, error) {
	if err := checkEpsilon(eps); err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	return gaussianMu(eps, delta), nil
}

func gaussianMu(eps, delta float64) float64 {
	lo, hi := 0.0, 1e-9
	for gaussianDelta(eps, hi) <= delta {
		lo, hi = hi, hi*2
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi || hi-lo <= 1e-15*hi {
			break
		}
		if gaussianDelta(eps, mid) <= delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// GaussianEpsilon returns an epsilon, smallest up to the last digits, at which
// the Gaussian mechanism with this mu was evaluated to have at most delta; +Inf
// above MaxEpsilon.
func GaussianEpsilon(delta, mu float64) (float64, error) {
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if !(mu > 0) || math.IsInf(mu, 1) {
		return 0, fmt.Errorf("mu %v: want a positive finite number", mu)
	}
	return smallestEpsilon(func(eps float64) bool { return gaussianDelta(eps, mu) <= delta }), nil
}

// smallestEpsilon returns an accepted epsilon that bisection cannot improve, or
// +Inf. Only accepted values are returned, so monotonicity of ok decides how good
// the answer is and never whether it holds.
func smallestEpsilon(ok func(eps float64) bool) float64 {
	if ok(0) {
		return 0
	}
	lo, hi := 0.0, 1e-3
	for !ok(hi) {
		if hi >= MaxEpsilon {
			return math.Inf(1)
		}
		lo, hi = hi, math.Min(hi*1.5, MaxEpsilon)
	}
	for hi-lo > 1e-10*hi && hi > 1e-12 {
		mid := lo + (hi-lo)/2
		if ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func checkEpsilon(eps float64) error {
	if !(eps >= 0) || math.IsInf(eps, 1) {
		return fmt.Errorf("epsilon %v: want a finite number, at least 0", eps)
	}
	return nil
}

func checkDelta(delta float64) error {
	if !(delta > 0 && delta < 1) {
		return fmt.Errorf("delta %v: want a number strictly between 0 and 1", delta)
	}
	return nil
}
