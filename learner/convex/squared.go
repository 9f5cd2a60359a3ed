package convex

import "math"

// Squared is the squared loss (<theta, x> - y)^2 / 2 for finite labels.
//
// The curvature is 1 in the score, hence it is X^2-smooth for features of norm at most X; it has no Lipschitz constant
// on an unbounded domain, so large residuals are clipped.
type Squared struct{ linear }

// Name returns "squared".
func (Squared) Name() string { return "squared" }

// Value returns (<theta, x> - y)^2 / 2.
func (l Squared) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes (<theta, x> - y) x.
func (l Squared) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l Squared) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Squared) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Squared) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns +Inf for x > 0: the residual is unbounded.
func (Squared) Lipschitz(x float64) float64 { return unbounded(x) }

// Smoothness returns x^2.
func (Squared) Smoothness(x float64) float64 { return x * x }

// CheckLabel accepts every finite number.
func (Squared) CheckLabel(y float64) error { return checkFinite(y) }

func (Squared) value(s, y float64) float64 {
	r := s - y
	return r * r / 2
}

func (Squared) slope(s, y, c float64) float64 { return (s - y) / (1 + c) }

// unbounded is a constant that does not exist unless all features are 0.
func unbounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Inf(1)
}
