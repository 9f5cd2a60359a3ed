package randomizer

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// Rates of discrete Laplace laws are rational, s/t, with t of at most maxRateBits bits.
const (
	maxRateBits  = 50
	rateDigits   = 24 // significant bits of a rate that was a floating-point number
	maxRate      = 64
	maxTruncated = 1 << 20
)

// A DiscreteLaplace is the law Pr[X = x] = (1-q)/(1+q) q^|x| on the integers, with q = e^-rate and a rational rate s/t:
// the discrete analogue of a Laplace law of scale t/s. Shifting it by one costs epsilon = rate. The zero value is not a
// law.
type DiscreteLaplace struct{ s, t uint64 }

// newDiscreteLaplace returns the law of rate s/t, between 2^-26 and 64, with s and t of at most 50 bits.
func newDiscreteLaplace(s, t uint64) (DiscreteLaplace, error) {
	if s == 0 || t == 0 || s>>maxRateBits != 0 || t>>maxRateBits != 0 || s > maxRate*t || s < t>>26 {
		return DiscreteLaplace{}, fmt.Errorf("discrete Laplace: rate %d/%d: want 2^-26 to %d, of numbers below 2^%d", s, t,
			maxRate, maxRateBits)
	}
	a, b := s, t
	for b != 0 {
		a, b = b, a%b
	}
	return DiscreteLaplace{s / a, t / a}, nil
}

// LaplaceOfRate returns the law of the largest rate of 24 significant bits that is not above rate, between 2^-25 and
// 64.
func LaplaceOfRate(rate float64) (DiscreteLaplace, error) {
	if !(rate >= 0x1p-25 && rate <= maxRate) {
		return DiscreteLaplace{}, fmt.Errorf("discrete Laplace: rate %v: want 2^-25 to %d", rate, maxRate)
	}
	_, exponent := math.Frexp(rate) // rate = f 2^exponent, 1/2 <= f < 1
	shift := max(rateDigits-exponent, 0)
	return newDiscreteLaplace(uint64(math.Ldexp(rate, shift)), 1<<shift)
}

// Rate returns s/t, rounded: the epsilon of a shift by one.
func (l DiscreteLaplace) Rate() float64 { return float64(l.s) / float64(l.t) }

// Tail bounds Pr[X >= k] from above, within 1e-9 of it: q^k/(1+q) for k >= 0.
func (l DiscreteLaplace) Tail(k int64) float64 {
	if k <= 0 { // 1 - Pr[X >= 1-k]
		return min(1, 1-l.tail(1-k)*(1-1e-9)+0x1p-52)
	}
	return l.tail(k)*(1+1e-9) + 1e-300 // where it underflows
}

func (l DiscreteLaplace) tail(k int64) float64 {
	x := l.Rate() * float64(k)
	return math.Exp(-x) / (1 + math.Exp(-l.Rate()))
}

// Sample draws X exactly, provided that the source's bits are uniform and independent (Canonne, Kamath and Steinke
// 2020, Algorithm 2): in integers, with coins of rational probabilities. How long it takes depends on the draw, and on
// nothing else. Draws beyond 2^62 have a probability below e^-4000, and are not foreseen.
func (l DiscreteLaplace) Sample(src rand.Source) int64 {
	for {
		u := below(src, l.t)
		if !expCoin(src, u, l.t) {
			continue
		}
		var v uint64
		for expCoin(src, 1, 1) {
			v++
		}
		y := int64((u + l.t*v) / l.s)
		if src.Uint64()>>63 == 0 {
			return y
		}
		if y != 0 { // minus zero is zero drawn twice
			return -y
		}
	}
}

// expCoin returns true with probability e^(-u/t), for u <= t (Canonne, Kamath and Steinke 2020, Algorithm 1): the
// first of independent coins of probability u/(t k), k = 1, 2, ..., that fails has an odd number.
func expCoin(src rand.Source, u, t uint64) bool {
	for k := uint64(1); ; k++ {
		if below(src, t) >= u || below(src, k) != 0 {
			return k%2 == 1
		}
	}
}

// below draws one of 0, ..., n-1, n > 0, each with the same probability: the upper word of a product of 128 bits,
// without those draws that favour some (Lemire 2019).
func below(src rand.Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}

// A TruncatedLaplace is a discrete Laplace shifted by kappa, conditioned on {0, ..., 2 kappa}: Pr[R = r] is
// proportional to e^(-rate |r-kappa|) (Ghazi et al. 2023, Definition 3.4). The zero value is no law.
type TruncatedLaplace struct {
	laplace DiscreteLaplace
	kappa   int64
}

// NewTruncatedLaplace accepts a kappa of 1 to 2^20, and of 1 to 700 over the rate, so that most draws lie in the
// support and no probability underflows.
func NewTruncatedLaplace(l DiscreteLaplace, kappa int) (TruncatedLaplace, error) {
	if x := l.Rate() * float64(kappa); kappa < 1 || kappa > maxTruncated || !(x >= 1 && x <= 700) {
		return TruncatedLaplace{},
			fmt.Errorf("truncated Laplace: kappa %d at rate %v: want 1 to %d, and a product of 1 to 700", kappa, l.Rate(),
				maxTruncated)
	}
	return TruncatedLaplace{l, int64(kappa)}, nil
}

// Kappa returns the middle of the support, and Rate the rate of the discrete Laplace.
func (l TruncatedLaplace) Kappa() int    { return int(l.kappa) }
func (l TruncatedLaplace) Rate() float64 { return l.laplace.Rate() }

// Sample draws R exactly, by drawing from the discrete Laplace until the value lies in the support.
func (l TruncatedLaplace) Sample(src rand.Source) int {
	for {
		if x := l.laplace.Sample(src); -l.kappa <= x && x <= l.kappa {
			return int(x + l.kappa)
		}
	}
}

// Survival returns Pr[R >= s] and Pr[R < s] for s = 0, ..., 2 kappa + 1, each summed from its own end: accurate to a
// factor of 1 ± 1e-9, and exact where they are 0 or 1.
func (l TruncatedLaplace) Survival() (at, below []float64) {
	n := 2*l.kappa + 1
	mass := make([]float64, n)
	var total float64
	for r := range mass {
		mass[r] = math.Exp(-l.Rate() * math.Abs(float64(int64(r)-l.kappa)))
		total += mass[r]
	}
	at, below = make([]float64, n+1), make([]float64, n+1)
	for s := range n {
		below[s+1] = below[s] + mass[s]/total
		at[n-1-s] = at[n-s] + mass[n-1-s]/total
	}
	at[0], below[n] = 1, 1
	return at, below
}
