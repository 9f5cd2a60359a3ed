package accounting

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
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

// GaussianMu returns a mu, largest up to the last digits, at which the Gaussian
// mechanism was evaluated to be within the budget: its noise has standard
// deviation sensitivity/mu.
func GaussianMu(b Budget) (float64, error) {
	if err := validateEpsilon(b.Epsilon); err != nil {
		return 0, err
	}
	if err := validateDelta(b.Delta); err != nil {
		return 0, err
	}
	return gaussianMu(b.Epsilon, b.Delta), nil
}

// GaussianEpsilon returns the smallest epsilon at which the Gaussian mechanism, whose noise has standard deviation
// sensitivity/mu, was evaluated to be within delta; +Inf above MaxEpsilon.
func GaussianEpsilon(mu, delta float64) (float64, error) {
	if err := validateDelta(delta); err != nil {
		return 0, err
	}
	if !(mu >= 0) {
		return 0, fmt.Errorf("mu %v: want a number of at least 0", mu)
	}
	return smallestEpsilon(func(eps float64) bool { return gaussianDelta(eps, mu) <= delta }), nil
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

// smallestEpsilon returns an accepted epsilon that bisection cannot improve, or
// +Inf. Only accepted values are returned, so monotonicity of ok decides how good
// the result is and never whether it holds.
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

func validateEpsilon(eps float64) error {
	if !(eps >= 0) || math.IsInf(eps, 1) {
		return fmt.Errorf("epsilon %v: want a finite number, at least 0", eps)
	}
	return nil
}

func validateDelta(delta float64) error {
	if !(delta > 0 && delta < 1) {
		return fmt.Errorf("delta %v: want a number strictly between 0 and 1", delta)
	}
	return nil
}

// density returns the standard normal density.
func density(z float64) float64 {
	return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
}

// upperTail returns Q(z) = Pr[N(0,1) >= z], accurate in the upper tail.
func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// logUpperTail returns ln Q(z). Above 25 the tail is the density times Mills' ratio by
// its continued fraction, which has converged there after a few terms.
func logUpperTail(z float64) float64 {
	if z <= 25 {
		return math.Log(upperTail(z))
	}
	f := z
	for k := 24.0; k >= 1; k-- {
		f = z + k/f
	}
	return -z*z/2 - math.Log(f) - math.Log(2*math.Pi)/2
}

// tailQuantile returns the z >= 0 with Q(z) = s, for 0 < s <= 1/2: algorithm AS 241 (gonum) and one Halley step, so
// that its error is no more than erfc's.
func tailQuantile(s float64) float64 {
	z := -mathext.NormalQuantile(s)
	u := (upperTail(z) - s) / density(z)
	return z + u/(1-z*u/2)
}
