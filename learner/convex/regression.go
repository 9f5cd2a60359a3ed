package convex

import (
	"fmt"
	"math"
)

// Squared is the squared loss (<theta, x> - y)^2 / 2 for finite labels: X^2-smooth for features of norm at most X. It
// has no Lipschitz constant on an unbounded domain, so large residuals are clipped.
type Squared = Linear[squared]

type squared struct{}

func (squared) name() string { return "squared" }

func (squared) value(s, y float64) float64 {
	r := s - y
	return r * r / 2
}

func (squared) slope(s, y, c float64) float64 { return (s - y) / (1 + c) }

func (squared) lipschitz(x float64) float64 { return unbounded(x) }

func (squared) smoothness(x float64) float64 { return x * x }

// squaredShape returns the shape of half a square, whose curvature is 1 in every unit of the label.
func squaredShape(_ Declaration, r Residuals) FitShape {
	return FitShape{Gain: r.Deviation, Offset: r.Center, Unit: r.Deviation, Clip: 1.5 * r.Left, Curvature: 1, Step: 1,
		Slope: r.Left, Start: 1, Clipped: math.Erfc(1.5 / math.Sqrt2)}
}

// huber is the loss r^2/2 of the residual r = <theta, x> - y where |r| is at most the width w, and w (|r| - w/2) beyond
// (Huber 1964). It is w X-Lipschitz and X^2-smooth for features of norm at most X.
type huber struct{ w float64 }

func (huber) name() string { return "huber" }

func (l huber) value(s, y float64) float64 {
	r := math.Abs(s - y)
	if r <= l.w {
		return r * r / 2
	}
	return l.w * (r - l.w/2)
}

func (l huber) slope(s, y, c float64) float64 { return clamp(s-y, 1+c, -l.w, l.w) }

func (l huber) lipschitz(x float64) float64 { return l.w * x }

func (huber) smoothness(x float64) float64 { return x * x }

// huberShape approximates the loss by half a square up to the width: fewer residuals have a curvature, and slopes are
// at most the width.
func huberShape(d Declaration, r Residuals) FitShape {
	out, a := squaredShape(d, r), d.Width/r.Deviation
	if out.Clip >= a {
		out.Clip, out.Clipped = a, 0
	}
	out.Curvature = max(0.25, math.Erf(a/(r.Left*math.Sqrt2)))
	out.Step, out.Slope = 1/out.Curvature, min(r.Left, a)
	return out
}

// Absolute is the absolute loss |<theta, x> - y| for finite labels: regression of the median. It is X-Lipschitz for
// features of norm at most X, and not smooth.
type Absolute = Linear[absolute]

type absolute struct{}

func (absolute) name() string { return "absolute" }

func (absolute) value(s, y float64) float64 { return math.Abs(s - y) }

func (absolute) slope(s, y, c float64) float64 { return clamp(s-y, c, -1, 1) }

func (absolute) lipschitz(x float64) float64 { return x }

func (absolute) smoothness(x float64) float64 { return unbounded(x) }

func absoluteShape(_ Declaration, r Residuals) FitShape { return pinballShape(0.5, 2, r) }

// quantile is the pinball loss max(tau (y - s), (1-tau) (s - y)) of the score s = <theta, x>; its population minimizer
// is the tau-quantile of y given x (Koenker & Bassett 1978). It is max(tau, 1-tau) X-Lipschitz for features of norm at
// most X, and not smooth. At tau = 1/2 it is half the absolute loss.
type quantile struct{ tau float64 }

func (quantile) name() string { return "quantile" }

func (l quantile) value(s, y float64) float64 {
	r := s - y
	return max(-l.tau*r, (1-l.tau)*r)
}

func (l quantile) slope(s, y, c float64) float64 { return clamp(s-y, c, -l.tau, 1-l.tau) }

func (l quantile) lipschitz(x float64) float64 { return x * max(l.tau, 1-l.tau) }

func (quantile) smoothness(x float64) float64 { return unbounded(x) }

func quantileShape(d Declaration, r Residuals) FitShape { return pinballShape(d.Level, 1, r) }

const (
	largestShift = 3    // of the start of a quantile, in deviations of the residual
	leastDensity = 0.02 // of residuals at a quantile near 0 or 1, where steps would be without bounds
)

// pinballShape returns the shape of the unit times the loss of a quantile, for residuals of a normal law: the curvature
// is their density at the quantile.
func pinballShape(level, unit float64, r Residuals) FitShape {
	z := math.Sqrt2 * math.Erfinv(2*level-1)
	density := max(math.Exp(-z*z/2)/math.Sqrt(2*math.Pi), leastDensity)
	return FitShape{Gain: r.Deviation, Unit: unit, Clip: 1, Curvature: density / r.Left, Step: 0.6 * r.Left / density,
		Offset: r.Center + r.Deviation*r.Left*min(max(z, -largestShift), largestShift),
		Slope:  math.Sqrt(level * (1 - level)), Start: 1, Smoothing: r.Deviation * r.Left / unit}
}

// Poisson is the loss of Poisson regression with a bounded domain, for counts y = 0, 1, 2, ...: half the deviance
//
//	E(s) - y s + y ln y - y,   s = <theta, x>,
//
// where E is exp up to the score bound S and its tangent above, so that predicted means grow only linearly beyond e^S.
// Below S nothing has to be changed: exp is convex, Lipschitz and smooth there. It is max(e^S, y_max) X-Lipschitz and
// e^S X^2-smooth for features of norm at most X. At least 0 for counts up to e^S.
type Poisson struct {
	Linear[poisson]
	most float64 // y_max, the largest count that is accepted; 0 means any, and then the loss has no Lipschitz constant
}

// Lipschitz returns x max(e^S, y_max), +Inf without a largest count.
func (l Poisson) Lipschitz(x float64) float64 {
	if l.most == 0 {
		return unbounded(x)
	}
	return x * max(math.Exp(l.h.bound), l.most)
}

// CheckLabel accepts whole numbers from 0 to the largest count.
func (l Poisson) CheckLabel(y float64) error {
	if l.most > 0 && y > l.most {
		return fmt.Errorf("label: above the largest count, want at most %v", l.most)
	}
	return l.Linear.CheckLabel(y)
}

type poisson struct{ bound float64 }

func (poisson) name() string { return "poisson" }

func (l poisson) value(s, y float64) float64 {
	mean := math.Exp(min(s, l.bound))
	if s > l.bound {
		mean += float64(mean * (s - l.bound))
	}
	if y <= 0 {
		return mean
	}
	return mean - y + float64(y*(math.Log(y)-s))
}

func (l poisson) slope(s, y, c float64) float64 {
	top, u := math.Exp(l.bound), s+float64(c*y)
	if u >= l.bound+float64(c*top) {
		return top - y
	}
	return min(expSlope(u, c), top) - y
}

func (poisson) lipschitz(x float64) float64 { return unbounded(x) }

func (l poisson) smoothness(x float64) float64 { return math.Exp(l.bound) * x * x }

// poissonShape approximates the loss by half a square around the mean count, whose logarithm is the score.
func poissonShape(d Declaration, r Residuals) FitShape {
	out, ratio := squaredShape(d, r), r.Deviation/r.Center
	return FitShape{Gain: 1, Offset: math.Log(r.Center), Unit: r.Center, Clip: 1.5 * r.Left * ratio, Curvature: 1,
		Step: 0.7, Slope: r.Left * ratio, Start: 0.9 * ratio, Clipped: out.Clipped}
}

// leastScoreBound returns the logarithm of the largest count, rounded up.
func leastScoreBound(most float64) float64 { return max(1, math.Ceil(math.Log(most))) }
