package convex

import "math"

// Linear is a loss h(<theta, x>; y) of one linear score.
//
// The Moreau envelope of such a loss is a function of the score again: with c = ||x||^2/b, its gradient at a
// score s is p x where p is in the subdifferential of h at s - c p, and the prox of theta is theta - (p/b) x.
// So one number gives the gradient, the prox and the envelope, and c = 0 the loss itself.
type Linear[H score] struct{ h H }

// A score is the convex function h.
type score interface {
	name() string
	value(s, y float64) float64
	// slope returns the p of the subdifferential of h at s - c p, for c >= 0; unique for c > 0.
	slope(s, y, c float64) float64
	// lipschitz and smoothness return the constants of the loss for features of norm at most x.
	lipschitz(x float64) float64
	smoothness(x float64) float64
}

// OneScore reports whether a loss is known to be a function of one linear score with a parameter for each
// feature. The gradient of such a loss is zero where the row is zero, and does not depend on the parameter
// there.
func OneScore(l Loss) bool {
	switch l := l.(type) {
	case interface{ oneScore() }:
		return true
	case envelope:
		return OneScore(l.base)
	case weighted:
		return OneScore(l.base)
	case weightedProximal:
		return OneScore(l.base)
	}
	return false
}

func (Linear[H]) oneScore() {}

// SlopeOf returns the derivative h'(s; y) of a loss of one score at a score and an admissible label. Its rounding
// errors are a few units in the last place, relative to its value and to numbers as large as Lipschitz(1) and
// Smoothness(1). It returns nil for any other loss, and for envelopes, whose slopes depend on the row.
func SlopeOf(l Loss) func(s, y float64) float64 {
	if s, ok := l.(interface {
		slopeOf() func(s, y float64) float64
	}); ok {
		return s.slopeOf()
	}
	return nil
}

func (l Linear[H]) slopeOf() func(s, y float64) float64 {
	return func(s, y float64) float64 { return l.h.slope(s, y, 0) }
}

// Name returns the loss's name in task files.
func (l Linear[H]) Name() string { return l.h.name() }

// Parameters returns the number of features.
func (Linear[H]) Parameters(features int) int { return features }

// Value returns h(<theta, x>; y), accurate for scores of any size.
func (l Linear[H]) Value(theta []float64, e Example) float64 { return l.h.value(e.Dot(theta), e.Label) }

// Gradient writes h'(<theta, x>; y) x.
func (l Linear[H]) Gradient(dst, theta []float64, e Example) {
	p := Normal(l.h.slope(e.Dot(theta), e.Label, 0))
	clear(dst)
	e.AddTo(dst, p)
}

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form or by a search in the score.
func (l Linear[H]) Prox(dst, theta []float64, e Example, b float64) {
	p := l.h.slope(e.Dot(theta), e.Label, curvature(e, b))
	copy(dst, theta)
	e.AddTo(dst, -p/b)
}

// Lipschitz returns the supremum of |h'| times x, see Loss.
func (l Linear[H]) Lipschitz(x float64) float64 { return l.h.lipschitz(x) }

// Smoothness returns the supremum of h” times x^2, see Loss.
func (l Linear[H]) Smoothness(x float64) float64 { return l.h.smoothness(x) }

// CheckLabel accepts the labels that the table of losses has for the name.
func (l Linear[H]) CheckLabel(y float64) error { return TraitsOf(l.h.name()).Labels.check(y) }

func (l Linear[H]) envelopeGradient(dst, theta []float64, e Example, b float64) {
	p := Normal(l.h.slope(e.Dot(theta), e.Label, curvature(e, b)))
	clear(dst)
	e.AddTo(dst, p)
}

func (l Linear[H]) envelopeValue(theta []float64, e Example, b float64) float64 {
	s, c := e.Dot(theta), curvature(e, b)
	p := l.h.slope(s, e.Label, c)
	shift := float64(c * p)
	return l.h.value(s-shift, e.Label) + float64(shift*p)/2
}

// curvature returns c = ||x||^2/b.
func curvature(e Example, b float64) float64 {
	n := e.Norm()
	return n / b * n
}

// clamp returns r/c cut to [low, high], an interval around 0; r/0 is an infinity of r's sign, and 0/0 is 0.
func clamp(r, c, low, high float64) float64 {
	if r == 0 {
		return 0
	}
	return min(max(r/c, low), high)
}

// unbounded returns +Inf, or 0 if all features are 0.
func unbounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Inf(1)
}
