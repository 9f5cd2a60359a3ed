package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A law is of the number of deletions that a score may have for its release: truncated discrete Laplace on {0, ..., 2k}, with the rate e1.
type law struct {
	e1 float64
	k  int
}

// smallestLaw is the smallest k at which either end of the law has no more mass than delta.
func smallestLaw(e1, delta float64) int {
	for k := 1; ; k++ {
		if (law{e1, k}).end() <= delta {
			return k
		}
	}
}

// end is the mass of either end.
func (l law) end() float64 {
	q := math.Exp(-l.e1)
	return math.Pow(q, float64(l.k)) / l.total()
}

// total is the sum of exp(-e1 |r-k|).
func (l law) total() float64 {
	q := math.Exp(-l.e1)
	return 1 + 2*q*(1-math.Pow(q, float64(l.k)))/(1-q)
}

// survival has Pr[R >= s] and Pr[R < s] for s = 0, ..., 2k+2, each summed by itself.
func (l law) survival() (at, below []float64) {
	n := 2*l.k + 1
	mass := func(r int) float64 { return math.Exp(-l.e1*math.Abs(float64(r-l.k))) / l.total() }
	at, below = make([]float64, n+2), make([]float64, n+2)
	for s := n - 1; s >= 0; s-- {
		at[s] = at[s+1] + mass(s)
	}
	for s := range n {
		below[s+1] = below[s] + mass(s)
	}
	at[0], below[n], below[n+1] = 1, 1, 1
	return at, below
}

// noise is the smallest standard deviation, up to 1e-9 of it, with which the release of a score's law is within the budget; +Inf: none is. distance bounds how far what is
// released of neighbours with scores s and t, at most one apart, may be: the profile of docs/curator.md for Gaussian noise, a planning figure.
func (l law) noise(b accounting.Budget, distance func(s, t int) float64) float64 {
	at, below := l.survival()
	within := func(sigma float64) bool {
		for s := range 2*l.k + 2 {
			for _, t := range [3]int{s - 1, s, s + 1} {
				if t < 0 || t > 2*l.k+1 {
					continue
				}
				delta := max(0, below[s]-math.Exp(b.Epsilon)*below[t])
				switch {
				case at[s] > 0 && at[t] > 0:
					delta += at[s] * gaussianProfile(b.Epsilon+math.Log(at[t]/at[s]), distance(s, t)/sigma)
				case at[s] > 0:
					delta += at[s]
				}
				if delta > b.Delta {
					return false
				}
			}
		}
		return true
	}
	return smallestNoise(distance(l.k, l.k), within)
}

// calibratedLaw is the law with the least noise where neighbours of scores s and t are (s+t+2) apart.
func calibratedLaw(b accounting.Budget) law {
	best, _ := bestLaw(b, func(law) func(s, t int) float64 { return func(s, t int) float64 { return float64(s + t + 2) } })
	return best
}

// bestLaw is the one with the least noise among some rates and, of each, the smallest laws.
func bestLaw(b accounting.Budget, distance func(law) func(s, t int) float64) (best law, noise float64) {
	noise = math.Inf(1)
	for i := 4; i < 20; i++ {
		e1 := b.Epsilon * float64(i) / 20
		smallest := smallestLaw(e1, b.Delta)
		for k := smallest; k <= smallest+1; k++ {
			l := law{e1, k}
			if sigma := l.noise(b, distance(l)); sigma < noise {
				best, noise = l, sigma
			}
		}
	}
	return best, noise
}

// smallestNoise searches up from a guess, then by bisection; +Inf: not even 2^40 times the guess is within.
func smallestNoise(guess float64, within func(sigma float64) bool) float64 {
	if !(guess > 0) || math.IsInf(guess, 1) {
		return math.Inf(1)
	}
	high := guess
	for within(high) {
		high /= 2
	}
	low := high
	for steps := 0; !within(high); steps++ {
		if steps > 40 {
			return math.Inf(1)
		}
		low, high = high, 2*high
	}
	for high-low > 1e-9*high {
		if middle := (low + high) / 2; within(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// gaussianProfile is the delta of Gaussian noise at every real epsilon, where r is shift over standard deviation.
func gaussianProfile(epsilon, r float64) float64 {
	if r == 0 {
		return max(0, -math.Expm1(epsilon))
	}
	return upperTail(epsilon/r-r/2) - math.Exp(epsilon)*upperTail(epsilon/r+r/2)
}

func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
