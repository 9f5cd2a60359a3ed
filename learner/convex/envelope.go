package convex

import (
	"fmt"
	"math"
)

// NewEnvelope returns the Moreau envelope of a Proximal loss with parameter b, finite and above 0,
//
//	f_b(theta) = min_u l(u; e) + (b/2) ||u - theta||^2,
//
// which is convex, differentiable with gradient b (theta - prox(theta)), and b-smooth; if l is L-Lipschitz, then so is
// f_b, and f_b <= l <= f_b + L^2/(2b) (Cheu, Joseph, Mao, Peng 2022, Section 4.1; the constant L and not 2L because the
// gradient is a subgradient of l at the prox). It keeps the loss's name: a round announces b beside it.
//
// The envelopes of the losses of this package are computed from their derivatives, without the difference theta - prox,
// which keeps its digits however large b is. Gradient allocates nothing of its own.
func NewEnvelope(l Loss, b float64) (Loss, error) {
	if !(b > 0) || math.IsInf(b, 0) {
		return nil, fmt.Errorf("smoothing: %v, want a finite number above 0", b)
	}
	p, ok := l.(Proximal)
	if !ok {
		return nil, fmt.Errorf("smoothing: the loss %s has no prox operator (convex.Proximal)", l.Name())
	}
	return envelope{base: l, loss: p, b: b}, nil
}

// enveloped is a loss that computes its envelope itself.
type enveloped interface {
	envelopeValue(theta []float64, e Example, b float64) float64
	envelopeGradient(dst, theta []float64, e Example, b float64)
}

type envelope struct {
	base // Name, Parameters, Lipschitz and CheckLabel are the loss's
	loss Proximal
	b    float64
}

type base = Loss

func (l envelope) Value(theta []float64, e Example) float64 {
	return envelopeValue(l.loss, theta, e, l.b)
}

func (l envelope) Gradient(dst, theta []float64, e Example) {
	envelopeGradient(l.loss, dst, theta, e, l.b)
}

// Smoothness returns 1/(1/beta + 1/b) for a beta-smooth loss, b for one that is not smooth: at most b and at
// most beta. The envelope's conjugate is the loss's conjugate plus ||.||^2/(2b), hence (1/beta + 1/b)-strongly
// convex.
func (l envelope) Smoothness(x float64) float64 {
	beta := l.loss.Smoothness(x)
	if math.IsInf(beta, 0) {
		return l.b
	}
	return beta / (1 + beta/l.b)
}

func envelopeValue(l Proximal, theta []float64, e Example, b float64) float64 {
	if s, ok := l.(enveloped); ok {
		return s.envelopeValue(theta, e, b)
	}
	u := make([]float64, len(theta))
	l.Prox(u, theta, e, b)
	value, way := l.Value(u, e), 0.0
	for i, v := range u {
		r := v - theta[i]
		way += float64(r * r)
	}
	return value + float64(b*way)/2
}

func envelopeGradient(l Proximal, dst, theta []float64, e Example, b float64) {
	if s, ok := l.(enveloped); ok {
		s.envelopeGradient(dst, theta, e, b)
		return
	}
	l.Prox(dst, theta, e, b)
	for i, v := range dst {
		dst[i] = b * (theta[i] - v)
	}
}
