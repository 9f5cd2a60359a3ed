package convex

import (
	"fmt"
	"math"
	"slices"
)

// NewWeighted returns a loss that counts every class as often as its weight says: value, gradient and constants are multiplied by
// the weight of the example's class. The weights are public, finite and above 0: of the labels -1 and +1, in this order, for a
// loss that takes them, or of the classes 0 .. k-1. It is Proximal if the loss is. Only labels of classes are accepted.
func NewWeighted(l Loss, weights []float64) (Loss, error) {
	w := weighted{base: l, weights: slices.Clone(weights), signs: l.CheckLabel(-1) == nil}
	if err := checkWeights(w.weights); err != nil {
		return nil, err
	}
	last := float64(len(weights) - 1)
	switch {
	case w.signs && len(weights) != 2:
		return nil, fmt.Errorf("class weights: %d, want 2 for the labels -1 and +1 of the loss %s", len(weights), l.Name())
	case !w.signs && (l.CheckLabel(last) != nil || l.CheckLabel(last+1) == nil):
		return nil, fmt.Errorf("class weights: %d, want one for each class of the loss %s", len(weights), l.Name())
	}
	if p, ok := l.(Proximal); ok {
		return weightedProximal{weighted: w, loss: p}, nil
	}
	return w, nil
}

func checkWeights(weights []float64) error {
	if len(weights) < 2 {
		return fmt.Errorf("class weights: %d, want one for each class", len(weights))
	}
	for i, v := range weights {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("class weights: %v for class %d, want a finite number above 0", v, i)
		}
	}
	return nil
}

type weighted struct {
	base    // Name and Parameters are the loss's
	weights []float64
	signs   bool // labels are -1 and +1
}

// weight returns the weight of a label's class; any of them for a label that CheckLabel refuses.
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

func (l weighted) Lipschitz(x float64) float64 { return slices.Max(l.weights) * l.base.Lipschitz(x) }

func (l weighted) Smoothness(x float64) float64 { return slices.Max(l.weights) * l.base.Smoothness(x) }

func (l weighted) CheckLabel(y float64) error {
	if l.signs {
		return checkSign("class-weighted "+l.Name(), y)
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
