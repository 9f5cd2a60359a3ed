package convex

import "math"

// Squared is the squared loss (<theta, x> - y)^2 / 2 for finite labels.
//
// The curvature is 1 in the score, hence it is X^2-smooth for features of norm at most X; it has no Lipschitz constant
// on an unbounded domain, so large residuals are clipped.
type Squared struct{}

// Name returns "squared".
func (Squared) Name() string { return "squared" }

// Parameters returns the number of features.
func (Squared) Parameters(features int) int { return features }

// Value returns (<theta, x> - y)^2 / 2.
func (Squared) Value(theta []float64, e Example) float64 {
	r := e.Dot(theta) - e.Label
	return r * r / 2
}

// Gradient writes (<theta, x> - y) x.
func (Squared) Gradient(dst, theta []float64, e Example) {
	linearGradient(dst, e, e.Dot(theta)-e.Label)
}

// Lipschitz returns +Inf for x > 0: the residual is unbounded.
func (Squared) Lipschitz(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Inf(1)
}

// Smoothness returns x^2.
func (Squared) Smoothness(x float64) float64 { return x * x }

// CheckLabel accepts every finite number.
func (Squared) CheckLabel(y float64) error { return checkFinite(y) }
