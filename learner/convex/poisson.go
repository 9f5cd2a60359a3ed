package convex

import (
	"fmt"
	"math"
)

// Poisson is the loss of Poisson regression with a bounded domain, for counts y = 0, 1, 2, ...: half the deviance
//
//	E(s) - y s + y ln y - y,   s = <theta, x>,
//
// where E is exp up to the score bound S and its tangent above, so that predicted means grow only linearly beyond e^S. Below S
// nothing has to be changed: exp is convex, Lipschitz and smooth there. It is max(e^S, y_max) X-Lipschitz and
// e^S X^2-smooth for features of norm at most X. At least 0 for counts up to e^S.
type Poisson struct {
	linear
	ScoreBound float64 // S, above 0 and at most 300
	MaxCount   float64 // y_max, the largest count that is accepted; 0 means any, and then the loss has no Lipschitz constant
}

// NewPoisson returns the loss of a score bound in (0, 300] and of counts up to a maximum, 0 for any.
func NewPoisson(scoreBound, maxCount float64) (Poisson, error) {
	if !(scoreBound > 0 && scoreBound <= 300) {
		return Poisson{}, fmt.Errorf("score bound: %v, want a number above 0 and at most 300", scoreBound)
	}
	if !(maxCount >= 0) || math.IsInf(maxCount, 0) {
		return Poisson{}, fmt.Errorf("max count: %v, want a finite number above 0, or 0 for any", maxCount)
	}
	return Poisson{ScoreBound: scoreBound, MaxCount: maxCount}, nil
}

// Name returns "poisson".
func (Poisson) Name() string { return "poisson" }

// Value returns half the deviance.
func (l Poisson) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes (E'(<theta, x>) - y) x.
func (l Poisson) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, by Newton's method in the score.
func (l Poisson) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Poisson) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Poisson) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x max(e^S, y_max), +Inf without a largest count.
func (l Poisson) Lipschitz(x float64) float64 {
	if l.MaxCount == 0 {
		return unbounded(x)
	}
	return x * max(math.Exp(l.ScoreBound), l.MaxCount)
}

// Smoothness returns e^S x^2.
func (l Poisson) Smoothness(x float64) float64 { return math.Exp(l.ScoreBound) * x * x }

// CheckLabel accepts whole numbers from 0 to the largest count.
func (l Poisson) CheckLabel(y float64) error {
	if !(y >= 0) || y != math.Trunc(y) || math.IsInf(y, 0) {
		return fmt.Errorf("label: outside the domain of the poisson loss, want a whole number of at least 0")
	}
	if l.MaxCount > 0 && y > l.MaxCount {
		return fmt.Errorf("label: above the largest count of the poisson loss, want at most %v", l.MaxCount)
	}
	return nil
}

func (l Poisson) value(s, y float64) float64 {
	mean := math.Exp(min(s, l.ScoreBound))
	if s > l.ScoreBound {
		mean += float64(mean * (s - l.ScoreBound))
	}
	if y <= 0 {
		return mean
	}
	return mean - y + float64(y*(math.Log(y)-s))
}

func (l Poisson) slope(s, y, c float64) float64 {
	top, u := math.Exp(l.ScoreBound), s+float64(c*y)
	if u >= l.ScoreBound+float64(c*top) {
		return top - y
	}
	return min(expSlope(u, c), top) - y
}
