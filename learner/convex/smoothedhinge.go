package convex

// SmoothedHinge is the hinge loss with its corner rounded off over a width w below the margin m = y <theta, x> = 1: 0 for m >= 1,
// (1-m)^2/(2w) for 1-w <= m <= 1, and 1 - m - w/2 below; labels y = -1 or +1. It is X-Lipschitz and X^2/w-smooth
// for features of norm at most X, and at most w/2 below the hinge loss.
type SmoothedHinge struct {
	linear
	Width float64 // w, finite and positive, in units of the margin
}

// NewSmoothedHinge returns the loss of a width, finite and positive.
func NewSmoothedHinge(width float64) (SmoothedHinge, error) {
	return SmoothedHinge{Width: width}, checkWidth(width)
}

// Name returns "smoothed-hinge".
func (SmoothedHinge) Name() string { return "smoothed-hinge" }

// Value returns the loss of the margin.
func (l SmoothedHinge) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes -y x (1-m)/w, the factor (1-m)/w cut to [0, 1].
func (l SmoothedHinge) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l SmoothedHinge) Prox(dst, theta []float64, e Example, b float64) {
	linearProx(l, dst, theta, e, b)
}

func (l SmoothedHinge) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l SmoothedHinge) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x.
func (SmoothedHinge) Lipschitz(x float64) float64 { return x }

// Smoothness returns x^2/w.
func (l SmoothedHinge) Smoothness(x float64) float64 { return x * x / l.Width }

// CheckLabel accepts -1 and +1.
func (SmoothedHinge) CheckLabel(y float64) error { return checkSign("smoothed hinge", y) }

func (l SmoothedHinge) value(s, y float64) float64 {
	r := max(0, 1-float64(y*s))
	if r <= l.Width {
		return r / l.Width * r / 2
	}
	return r - l.Width/2
}

func (l SmoothedHinge) slope(s, y, c float64) float64 {
	return -y * clamp(1-float64(y*s), l.Width+c, 0, 1)
}
