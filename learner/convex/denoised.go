package convex

import (
	"fmt"
	"slices"
)

// NewDenoised returns the loss whose expectation under label noise is the expectation of l without it. A label of -1 or +1 was
// flipped with a publicly declared probability rho in [0, 1/2), whatever the features (Natarajan, Dhillon, Ravikumar, Tewari, Learning
// with Noisy Labels, 2013, Lemma 1):
//
//	l'(theta; x, y) = ((1-rho) w_y l(theta; x, y) - rho w_-y l(theta; x, -y)) / (1-2 rho)
//
// with class weights w of the true labels -1 and +1, nil for none. It is convex where l(x, y) - l(x, -y) is linear in theta, for which
// l has to be Logistic or Squared, and the weights at most (1-rho)/rho apart. The correction costs variance: the
// gradient grows by up to (1-rho)/(1-2 rho). Values can be negative.
func NewDenoised(l Loss, rho float64, weights []float64) (Loss, error) {
	if !(rho >= 0 && rho < 0.5) {
		return nil, fmt.Errorf("label noise: %v, want a number of at least 0 and below 0.5", rho)
	}
	d := denoised{base: l}
	switch l := l.(type) {
	case Logistic:
		d.score, d.tilt = l, 1
	case Squared:
		d.score, d.tilt = l, 2
	default:
		return nil, fmt.Errorf("label noise: the corrected %s loss is not convex; want logistic or squared, with labels -1 and +1", l.Name())
	}
	if weights == nil {
		weights = []float64{1, 1}
	}
	if err := checkWeights(weights); err != nil {
		return nil, err
	}
	if len(weights) != 2 {
		return nil, fmt.Errorf("class weights: %d, want 2 for the labels -1 and +1", len(weights))
	}
	for i, w := range weights {
		d.own[i] = (1 - rho) * w / (1 - 2*rho)
		d.other[i] = rho * weights[1-i] / (1 - 2*rho)
		if !(d.own[i] > d.other[i]) {
			return nil, fmt.Errorf("class weights: %v and %v under label noise %v make the corrected loss concave; want them less than a factor %v apart",
				weights[0], weights[1], rho, (1-rho)/rho)
		}
	}
	return d, nil
}

// denoised uses that h(s; -y) = h(s; y) + tilt y s.
type denoised struct {
	base       // Name and Parameters are the loss's
	score      score
	tilt       float64
	own, other [2]float64 // what h(s; y) and -h(s; -y) count, for y = -1 and +1
}

func (l denoised) at(y float64) (keep, tilt float64) {
	i := 0
	if y > 0 {
		i = 1
	}
	return l.own[i] - l.other[i], float64(l.other[i] * l.tilt * y)
}

func (l denoised) value(s, y float64) float64 {
	keep, tilt := l.at(y)
	return float64(keep*l.score.value(s, y)) - float64(tilt*s)
}

func (l denoised) slope(s, y, c float64) float64 {
	keep, tilt := l.at(y)
	return float64(keep*l.score.slope(s+float64(c*tilt), y, c*keep)) - tilt
}

func (l denoised) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

func (l denoised) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

func (l denoised) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l denoised) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l denoised) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz is attained far on the wrong side of the larger class.
func (l denoised) Lipschitz(x float64) float64 { return slices.Max(l.own[:]) * l.base.Lipschitz(x) }

func (l denoised) Smoothness(x float64) float64 {
	return max(l.own[0]-l.other[0], l.own[1]-l.other[1]) * l.base.Smoothness(x)
}

func (l denoised) CheckLabel(y float64) error { return checkSign("noise-corrected "+l.Name(), y) }
