package convex

import (
	"fmt"
	"math"
	"slices"
)

// Smoothed returns a loss of one score with h(s; y) replaced by its Moreau envelope in the score, min_t h(t; y) + (s -
// t)^2/(2c), for a finite c >= 0 in units of the score for each unit of the slope: it is 1/c-smooth in the score, and
// at c = 0 the loss itself. Unlike NewEnvelope it smooths every row alike, however long its features are. Weights of
// classes multiply the smoothed loss. A smoothed loss has no prox.
func Smoothed(l Loss, c float64) (Loss, error) {
	if !(c >= 0) || math.IsInf(c, 0) {
		return nil, fmt.Errorf("smoothing: %v, want a finite number of at least 0", c)
	}
	if c == 0 {
		return l, nil
	}
	s, ok := l.(interface{ smoothed(c float64) (Loss, error) })
	if !ok {
		return nil, fmt.Errorf("smoothing: the loss %s has several scores, or is not one of this package", l.Name())
	}
	return s.smoothed(c)
}

// SmoothingGap bounds how far Smoothed(l, c) is below l: c/2 times the square of the largest slope in the score, times
// the largest weight of a class. Cutting slopes makes it no larger. It is +Inf where there is no bound.
func SmoothingGap(l Loss, c float64) float64 {
	if w, ok := l.(interface{ gap(c float64) float64 }); ok {
		return w.gap(c)
	}
	steep := l.Lipschitz(1)
	return c / 2 * steep * steep
}

func (l weighted) gap(c float64) float64 { return slices.Max(l.weights) * SmoothingGap(l.base, c) }

func (l Linear[H]) smoothed(c float64) (Loss, error) { return smoothed[H]{base: l, h: l.h, c: c}, nil }

func (l Poisson) smoothed(c float64) (Loss, error) {
	return smoothed[poisson]{base: l, h: l.h, c: c}, nil
}

func (l weighted) smoothed(c float64) (Loss, error) {
	loss, err := Smoothed(l.base, c)
	if err != nil {
		return nil, err
	}
	return NewWeighted(loss, l.weights)
}

type smoothed[H score] struct {
	base // Name, Parameters, Lipschitz and CheckLabel are the loss's
	h    H
	c    float64
}

func (l smoothed[H]) Value(theta []float64, e Example) float64 {
	s := e.Dot(theta)
	p := l.h.slope(s, e.Label, l.c)
	shift := float64(l.c * p)
	return l.h.value(s-shift, e.Label) + float64(shift*p)/2
}

func (l smoothed[H]) Gradient(dst, theta []float64, e Example) {
	p := l.h.slope(e.Dot(theta), e.Label, l.c)
	clear(dst)
	e.AddTo(dst, p)
}

func (l smoothed[H]) slopeOf() func(s, y float64) float64 {
	return func(s, y float64) float64 { return l.h.slope(s, y, l.c) }
}

// Smoothness returns x^2/(1/beta + c) for a score function of smoothness beta.
func (l smoothed[H]) Smoothness(x float64) float64 {
	beta := l.h.smoothness(1)
	if math.IsInf(beta, 0) {
		return x * x / l.c
	}
	return x * x * beta / (1 + float64(l.c*beta))
}
