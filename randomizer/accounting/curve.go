package accounting

import (
	"fmt"
	"math"
)

// A Curve bounds the cost of a release at every epsilon: for every rung a Gaussian parameter and the total slack mass
// (docs/proofs/theorem-a.md, Theorem A). The bounds hold for both orders of every pair of neighbours, and do not fall
// where a mechanism's Shift or Rounds grow. The empty curve promises nothing.
type Curve []point

type point struct {
	mu float64 // sqrt(sum over rounds of mu_t^2)
	// slack is the sum over rounds of d_t tau_t, charged 1 + e^eps times.
	slack float64
}

// Compose returns the curve of the adaptive composition of the views, each in all of its rounds.
func Compose(views ...Mechanism) (Curve, error) {
	if err := validateAll(views); err != nil {
		return nil, err
	}
	return compose(views), nil
}

// GaussianCurve returns the curve of the Gaussian mechanism whose noise has standard deviation sensitivity/mu:
// what lattice noise is compared with.
func GaussianCurve(mu float64) (Curve, error) {
	if !(mu >= 0) {
		return nil, fmt.Errorf("mu %v: want a number of at least 0", mu)
	}
	return Curve{{mu: mu}}, nil
}

// Delta bounds from above the hockey-stick divergence at e^eps of neighbours in either order, for every real eps; at
// most 1, and 1 for NaN.
//
// At eps >= 0 it is the minimum over windows of deltaG + (1 + e^eps) T d tau: every window gives a valid bound at
// every eps. Below 0 it is the reversal H_a(P||Q) = 1 - a + a H_{1/a}(Q||P) with a = e^eps, which the bound of the
// other order bounds (docs/proofs/curator.md, noise on a lattice).
func (c Curve) Delta(eps float64) float64 {
	if eps < 0 {
		return math.Min(1, (math.Exp(eps)*c.scaledDelta(-eps, 1)-math.Expm1(eps))*(1+1e-12))
	}
	return c.scaledDelta(eps, 1)
}

// scaledDelta returns Delta at eps >= 0 with every mu multiplied by scale; only the planner's guesses use a scale
// other than 1.
func (c Curve) scaledDelta(eps, scale float64) float64 {
	best, tooMuch := 1.0, math.Inf(1)
	charge := (1 + math.Exp(eps)) * (1 + 1e-12)
	for _, pt := range c {
		slack, mu := charge*pt.slack, pt.mu*scale
		if !(slack < best) || mu >= tooMuch {
			continue
		}
		d := gaussianDelta(eps, mu)
		best = min(best, d+slack)
		if above(d, best) {
			tooMuch = mu
		}
	}
	return best
}

// above reports whether a Gaussian mechanism's delta alone is more than the best sum of delta and slack, by more than
// rounding: every larger mu's is too. To leave a window out never lowers a bound.
func above(d, best float64) bool { return d > best*(1+1e-6) }

// Near keeps a few points around the best one at eps: another curve, above this one by little there, which is
// evaluated faster.
func (c Curve) Near(eps float64) Curve {
	at, _ := c.best(eps)
	return c[max(0, at-reach):min(len(c), at+reach+1)]
}

// reach is the number of points that Near keeps on either side.
const reach = 6

// best returns the index of the point with the least delta at eps, and that delta.
func (c Curve) best(eps float64) (at int, delta float64) {
	best, tooMuch := math.Inf(1), math.Inf(1)
	charge := 1 + math.Exp(eps)
	for i, pt := range c {
		slack := charge * pt.slack
		if !(slack < best) || pt.mu >= tooMuch {
			continue
		}
		d := gaussianDelta(eps, pt.mu)
		if d+slack < best {
			best, at = d+slack, i
		}
		if above(d, best) {
			tooMuch = pt.mu
		}
	}
	return at, best
}

// settles reports whether the first points of a curve, without the later ones, give its Delta and its Near at eps: the
// last of them is past all that Near keeps, and its Gaussian alone is above the best. No later point has a smaller mu.
func (c Curve) settles(eps float64) bool {
	at, best := c.best(eps)
	return at+reach < len(c) && above(gaussianDelta(eps, c[len(c)-1].mu), best)
}

func (c Curve) epsilon(delta float64) float64 {
	return smallestEpsilon(func(eps float64) bool { return c.Delta(eps) <= delta })
}
