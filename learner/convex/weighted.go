package convex

import (
	"fmt"
	"math"
	"slices"
)

// NewWeighted returns a loss that counts every class by its weight: value, gradient and constants are
// multiplied by the weight of the example's class. The weights are public, finite and above 0: of the labels -1
// and +1, in this order, for a loss that takes them, or of the classes 0 .. k-1. It is Proximal if the loss is.
// Only labels of classes are accepted.
func NewWeighted(l Loss, weights []float64) (Loss, error) {
	w := weighted{base: l, weights: slices.Clone(weights), signs: l.CheckLabel(-1) == nil}
	k := 2
	if !w.signs {
		for k = 0; k < maxClasses && l.CheckLabel(float64(k)) == nil; {
			k++
		}
	}
	if err := checkWeights(w.weights, k); err != nil {
		return nil, err
	}
	if p, ok := l.(Proximal); ok {
		return weightedProximal{weighted: w, loss: p}, nil
	}
	return w, nil
}

// checkWeights refuses weights that are not of k classes.
func checkWeights(weights []float64, k int) error {
	if len(weights) != k {
		return &ParameterError{classWeights, weights, fmt.Sprintf("%d numbers, one a class", k)}
	}
	for i, v := range weights {
		if !(v > 0) || math.IsInf(v, 0) {
			return &ParameterError{fmt.Sprintf("%s.%d", classWeights, i), v, "a number > 0"}
		}
	}
	return nil
}

type weighted struct {
	base    // Name and Parameters are the loss's
	weights []float64
	signs   bool // labels are -1 and +1
}

// weight returns the weight of a label's class, or an arbitrary weight for a label that CheckLabel refuses.
func (l weighted) weight(y float64) float64 {
	if l.signs {
		y = (y + 1) / 2
	}
	if !(y > 0) { // NaN too
		return l.weights[0]
	}
	return l.weights[int(min(y, float64(len(l.weights)-1)))]
}

func (l weighted) Value(theta []float64, e Example) float64 {
	return l.weight(e.Label) * l.base.Value(theta, e)
}

func (l weighted) Gradient(dst, theta []float64, e Example) {
	l.base.Gradient(dst, theta, e)
	scale(dst, l.weight(e.Label))
}

func (l weighted) slopeOf() func(s, y float64) float64 {
	slope := SlopeOf(l.base)
	if slope == nil {
		return nil
	}
	return func(s, y float64) float64 { return l.weight(y) * slope(s, y) }
}

func (l weighted) Lipschitz(x float64) float64 { return slices.Max(l.weights) * l.base.Lipschitz(x) }

func (l weighted) Smoothness(x float64) float64 { return slices.Max(l.weights) * l.base.Smoothness(x) }

func (l weighted) CheckLabel(y float64) error {
	if l.signs {
		return TwoClasses.check(y)
	}
	return l.base.CheckLabel(y)
}

// weightedProximal minimizes w l(u) + (b/2) ||u - theta||^2 as w times l(u) + (b/(2w)) ||u - theta||^2.
type weightedProximal struct {
	weighted
	loss Proximal
}

func (l weightedProximal) Prox(dst, theta []float64, e Example, b float64) {
	l.loss.Prox(dst, theta, e, b/l.weight(e.Label))
}

func (l weightedProximal) envelopeValue(theta []float64, e Example, b float64) float64 {
	w := l.weight(e.Label)
	return w * envelopeValue(l.loss, theta, e, b/w)
}

func (l weightedProximal) envelopeGradient(dst, theta []float64, e Example, b float64) {
	w := l.weight(e.Label)
	envelopeGradient(l.loss, dst, theta, e, b/w)
	scale(dst, w)
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}
