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

// Absolute is the absolute loss |<theta, x> - y| for finite labels: regression of the median. It is X-Lipschitz for
// features of norm at most X, and not smooth.
type Absolute = Linear[absolute]

type absolute struct{}

func (absolute) name() string { return "absolute" }

func (absolute) value(s, y float64) float64 { return math.Abs(s - y) }

func (absolute) slope(s, y, c float64) float64 { return clamp(s-y, c, -1, 1) }

func (absolute) lipschitz(x float64) float64 { return x }

func (absolute) smoothness(x float64) float64 { return unbounded(x) }

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
