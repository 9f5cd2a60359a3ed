package convex

import (
	"fmt"
	"math"
)

// Huber is the loss r^2/2 of the residual r = <theta, x> - y where |r| is at most the width w, and w (|r| - w/2) beyond (Huber 1964),
// for finite labels. It is w X-Lipschitz and X^2-smooth for features of norm at most X.
type Huber struct {
	linear
	Width float64 // w, finite and positive, in units of the label
}

// NewHuber returns the loss of a width, finite and positive.
func NewHuber(width float64) (Huber, error) { return Huber{Width: width}, checkWidth(width) }

func checkWidth(width float64) error {
	if !(width > 0) || math.IsInf(width, 0) {
		return fmt.Errorf("width: %v, want a finite number above 0", width)
	}
	return nil
}

// Name returns "huber".
func (Huber) Name() string { return "huber" }

// Value returns r^2/2 for |r| <= w, w (|r| - w/2) beyond.
func (l Huber) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes r x with the residual r cut to [-w, w].
func (l Huber) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l Huber) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Huber) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Huber) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns w x.
func (l Huber) Lipschitz(x float64) float64 { return l.Width * x }

// Smoothness returns x^2.
func (Huber) Smoothness(x float64) float64 { return x * x }

// CheckLabel accepts every finite number.
func (Huber) CheckLabel(y float64) error { return checkFinite(y) }

func (l Huber) value(s, y float64) float64 {
	r := math.Abs(s - y)
	if r <= l.Width {
		return r * r / 2
	}
	return l.Width * (r - l.Width/2)
}

func (l Huber) slope(s, y, c float64) float64 { return clamp(s-y, 1+c, -l.Width, l.Width) }
