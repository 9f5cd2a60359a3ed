package convex

import "math"

// Logistic is the logistic loss ln(1 + exp(-y <theta, x>)) for labels y = -1 or +1.
//
// The slope is below 1 and the curvature at most 1/4 in the score, hence it is X-Lipschitz and X^2/4-smooth for
// features of norm at most X.
type Logistic struct{ linear }

// Name returns "logistic".
func (Logistic) Name() string { return "logistic" }

// Value returns ln(1 + exp(-y <theta, x>)), accurate for margins of any size.
func (l Logistic) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes -y x / (1 + exp(y <theta, x>)).
func (l Logistic) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, by Newton's method in the margin.
func (l Logistic) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Logistic) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Logistic) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x.
func (Logistic) Lipschitz(x float64) float64 { return x }

// Smoothness returns x^2/4.
func (Logistic) Smoothness(x float64) float64 { return x * x / 4 }

// CheckLabel accepts -1 and +1.
func (Logistic) CheckLabel(y float64) error { return checkSign("logistic", y) }

func (Logistic) value(s, y float64) float64 {
	m := float64(y * s)
	if m < 0 {
		return -m + math.Log1p(math.Exp(m))
	}
	return math.Log1p(math.Exp(-m))
}

func (Logistic) slope(s, y, c float64) float64 { return -y * sigmoidSlope(y*s, c) }
