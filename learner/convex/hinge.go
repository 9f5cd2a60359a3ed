package convex

// Hinge is the loss max(0, 1 - y <theta, x>) of support vector machines, for labels y = -1 or +1. It is X-Lipschitz for features
// of norm at most X, and not smooth.
type Hinge struct{ linear }

// Name returns "hinge".
func (Hinge) Name() string { return "hinge" }

// Value returns max(0, 1 - y <theta, x>).
func (l Hinge) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes -y x where the margin y <theta, x> is below 1, and 0 elsewhere.
func (l Hinge) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l Hinge) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Hinge) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Hinge) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x.
func (Hinge) Lipschitz(x float64) float64 { return x }

// Smoothness returns +Inf for x > 0: the slope jumps.
func (Hinge) Smoothness(x float64) float64 { return unbounded(x) }

// CheckLabel accepts -1 and +1.
func (Hinge) CheckLabel(y float64) error { return checkSign("hinge", y) }

func (Hinge) value(s, y float64) float64 { return max(0, 1-float64(y*s)) }

func (Hinge) slope(s, y, c float64) float64 { return -y * clamp(1-float64(y*s), c, 0, 1) }
