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

// A release after a score says how far apart what is released of neighbours with scores s and t, at most one apart, may be.
type distances func(s, t int) float64

// profile is the delta at epsilon of Gaussian noise on the release of this law's score (docs/curator.md, Deletions); what is above most is not told apart.
func (l law) profile(epsilon, sigma, most float64, apart distances) float64 {
	at, below := l.survival()
	worst := 0.0
	for i := range 2*l.k + 2 { // from the middle on, where the worst pair mostly is
		s := (i + l.k) % (2*l.k + 2)
		for t := max(s-1, 0); t <= min(s+1, 2*l.k+1); t++ {
			delta := max(0, below[s]-math.Exp(epsilon)*below[t])
			switch {
			case at[s] > 0 && at[t] > 0:
				delta += at[s] * gaussianProfile(epsilon+math.Log(at[t]/at[s]), apart(s, t)/sigma)
			case at[s] > 0:
				delta += at[s]
			}
			if worst = max(worst, delta); worst > most {
				return worst
			}
		}
	}
	return worst
}

// noise is the smallest standard deviation with which the release is within the budget, up to 1e-6 of it; +Inf: none is.
func (l law) noise(b accounting.Budget, apart distances) float64 {
	return smallestNoise(apart(l.k, l.k), func(sigma float64) bool { return l.profile(b.Epsilon, sigma, b.Delta, apart) <= b.Delta })
}

// calibratedLaw is the law with the least noise where neighbours of scores s and t are (s+t+2) apart.
func calibratedLaw(b accounting.Budget) (law, float64) {
	return bestLaw(b, func(law) distances { return func(s, t int) float64 { return float64(s + t + 2) } })
}

// bestLaw is the one with the least noise among some rates and, of each, the smallest laws.
func bestLaw(b accounting.Budget, apart func(law) distances) (best law, noise float64) {
	noise = math.Inf(1)
	for i := 4; i < 20; i++ {
		e1 := b.Epsilon * float64(i) / 20
		smallest := smallestLaw(e1, b.Delta)
		for k := smallest; k <= smallest+1; k++ {
			l := law{e1, k}
			if math.IsInf(noise, 1) || l.profile(b.Epsilon, noise, b.Delta, apart(l)) <= b.Delta {
				best, noise = l, l.noise(b, apart(l))
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
	for high-low > 1e-6*high {
		if middle := (low + high) / 2; within(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// gaussianProfile is the delta of Gaussian noise at every real epsilon, where mu is shift over standard deviation.
func gaussianProfile(epsilon, mu float64) float64 {
	c, err := accounting.GaussianCurve(mu)
	if err != nil {
		return 1
	}
	return c.Delta(epsilon)
}
