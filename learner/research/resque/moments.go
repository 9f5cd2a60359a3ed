package resque

import "math"

// maxMoment is the largest k at which LogMoment's rounding is within its margin.
const maxMoment = 2000

// LogMoment returns an upper bound, by at most 1e-9 too large for even k, of the logarithm of
//
//	mu_k(s) = exp(k(k-1) s^2/2) E|N((k-1)s, 1)|^k,
//
// with which E|w(v) - w(v')|^k <= (||v-v'||/rho)^k mu_k(s) for weights w at points v, v' of norm at most s rho: the
// sharpened Lemma 2(b), docs/proofs/resque.md. For odd k above 1 it is sqrt(mu_(k-1) mu_(k+1)). It takes k >= 1 and
// s >= 0; above k = 2000 it returns +Inf.
func LogMoment(k int, s float64) float64 {
	const margin = 1e-10 // a few dozen units in the last place of lgamma(maxMoment)
	switch {
	case k < 1 || !(s >= 0) || k > maxMoment:
		return math.Inf(1)
	case k == 1:
		return math.Log(2/math.Pi)/2 + margin
	case k%2 == 1:
		return (LogMoment(k-1, s) + LogMoment(k+1, s)) / 2
	}
	// E N(m,1)^k = sum_j C(k,2j) m^(k-2j) (2j-1)!!, all terms at least 0, with (2j-1)!! = (2j)!/(2^j j!).
	m := float64(k-1) * s
	terms, largest := make([]float64, 0, k/2+1), math.Inf(-1)
	for j := k / 2; j >= 0; j-- {
		power := 0.0 // log m^0
		if 2*j < k {
			power = float64(k-2*j) * math.Log(m)
		}
		t := power + logFactorial(k) - logFactorial(k-2*j) - logFactorial(j) - float64(j)*math.Ln2
		terms, largest = append(terms, t), max(largest, t)
	}
	var sum float64
	for _, t := range terms {
		sum += math.Exp(t - largest)
	}
	return float64(k)*m*s/2 + largest + math.Log(sum) + margin
}

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v
}

// dot returns the inner product, in a fixed order and without fused products.
func dot(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}
