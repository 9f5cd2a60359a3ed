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

// logisticShape is for labels that are flipped with the declared probability: then slopes are larger, see denoised.
func logisticShape(d Declaration) ClassShape {
	clean := 1 - 2*d.LabelNoise
	return ClassShape{Slope: 0.5 / clean, Bend: func([]float64) float64 { return 0.25 }, Noise: 1,
		Length: func(share, _ float64) float64 { return 1 - share },
		Square: func(share, _ float64) float64 { return (1 - share) * (1 - share) / clean / clean },
		Stream: streamShape{Planned: 0.15, Curvature: 0.15, Slope: 0.15, Spread: 2, Trust: 1.25}}
}

// Hinge is the loss max(0, 1 - y <theta, x>) of support vector machines, for labels y = -1 or +1: X-Lipschitz for
// features of norm at most X, and not smooth.
type Hinge = Linear[hinge]

type hinge struct{}

func (hinge) name() string { return "hinge" }

func (hinge) value(s, y float64) float64 { return max(0, 1-float64(y*s)) }

func (hinge) slope(s, y, c float64) float64 { return -y * clamp(1-float64(y*s), c, 0, 1) }

func (hinge) lipschitz(x float64) float64 { return x }

func (hinge) smoothness(x float64) float64 { return unbounded(x) }

// hingeShape rounds the corner off.
func hingeShape(Declaration) ClassShape {
	out := cornerShape(0)
	out.Least = 2 // at a score of -1 or +1
	return out
}

const (
	leastCorner = 0.5  // width over which the corner of a hinge is rounded off, at least
	nearCorner  = 0.25 // share of events on the rounded corner at a model that fits, over its width
)

// cornerShape returns the shape of a hinge whose corner is rounded off over the width w or, if that is less, over
// leastCorner. Steps begin at scores of 0, where all slopes have length 1.
func cornerShape(w float64) ClassShape {
	width := max(w, leastCorner)
	one := func(_, _ float64) float64 { return 1 }
	curvature := min(nearCorner, 0.6/(2*width))
	return ClassShape{Slope: 1, Bend: func([]float64) float64 { return 1 / (2 * width) }, Length: one, Square: one,
		Noise: 1, Smoothing: width - w,
		Stream: streamShape{Planned: nearCorner, Curvature: curvature, Slope: 0.5, Spread: 1, Trust: curvature / 0.5}}
}

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

func smoothedHingeShape(d Declaration) ClassShape { return cornerShape(d.Width) }
