package convex

import "math"

// Logistic is the logistic loss ln(1 + exp(-y <theta, x>)) for labels y = -1 or +1: X-Lipschitz and X^2/4-smooth for
// features of norm at most X.
type Logistic = Linear[logistic]

type logistic struct{}

func (logistic) name() string { return "logistic" }

func (logistic) value(s, y float64) float64 {
	m := float64(y * s)
	if m < 0 {
		return -m + math.Log1p(math.Exp(m))
	}
	return math.Log1p(math.Exp(-m))
}

func (logistic) slope(s, y, c float64) float64 { return -y * sigmoidSlope(y*s, c) }

func (logistic) lipschitz(x float64) float64 { return x }

func (logistic) smoothness(x float64) float64 { return x * x / 4 }

// Hinge is the loss max(0, 1 - y <theta, x>) of support vector machines, for labels y = -1 or +1: X-Lipschitz for
// features of norm at most X, and not smooth.
type Hinge = Linear[hinge]

type hinge struct{}

func (hinge) name() string { return "hinge" }

func (hinge) value(s, y float64) float64 { return max(0, 1-float64(y*s)) }

func (hinge) slope(s, y, c float64) float64 { return -y * clamp(1-float64(y*s), c, 0, 1) }

func (hinge) lipschitz(x float64) float64 { return x }

func (hinge) smoothness(x float64) float64 { return unbounded(x) }

// smoothedHinge is the hinge loss with its corner rounded off over a width w below the margin m = y <theta, x> = 1: 0
// for m >= 1, (1-m)^2/(2w) for 1-w <= m <= 1, and 1 - m - w/2 below. It is X-Lipschitz and X^2/w-smooth for features of
// norm at most X, and at most w/2 below the hinge loss.
type smoothedHinge struct{ w float64 }

func (smoothedHinge) name() string { return "smoothed-hinge" }

func (l smoothedHinge) value(s, y float64) float64 {
	r := max(0, 1-float64(y*s))
	if r <= l.w {
		return r / l.w * r / 2
	}
	return r - l.w/2
}

func (l smoothedHinge) slope(s, y, c float64) float64 { return -y * clamp(1-float64(y*s), l.w+c, 0, 1) }

func (smoothedHinge) lipschitz(x float64) float64 { return x }

func (l smoothedHinge) smoothness(x float64) float64 { return x * x / l.w }
