package convex

import "math"

// Absolute is the absolute loss |<theta, x> - y| for finite labels: regression of the median. It is X-Lipschitz for features of
// norm at most X, and not smooth.
type Absolute struct{ linear }

// Name returns "absolute".
func (Absolute) Name() string { return "absolute" }

// Value returns |<theta, x> - y|.
func (l Absolute) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes sign(<theta, x> - y) x, and 0 where the prediction is exact.
func (l Absolute) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l Absolute) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Absolute) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Absolute) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x.
func (Absolute) Lipschitz(x float64) float64 { return x }

// Smoothness returns +Inf for x > 0: the slope jumps.
func (Absolute) Smoothness(x float64) float64 { return unbounded(x) }

// CheckLabel accepts every finite number.
func (Absolute) CheckLabel(y float64) error { return checkFinite(y) }

func (Absolute) value(s, y float64) float64 { return math.Abs(s - y) }

func (Absolute) slope(s, y, c float64) float64 { return clamp(s-y, c, -1, 1) }
