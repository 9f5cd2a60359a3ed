package convex

import (
	"fmt"
	"slices"
)

// denoised is the loss whose expectation under label noise is the expectation of the logistic loss without it. A label
// of -1 or +1 was flipped with a publicly declared probability rho in [0, 1/2), whatever the features (Natarajan,
// Dhillon, Ravikumar, Tewari, Learning with Noisy Labels, 2013, Lemma 1):
//
//	l'(theta; x, y) = ((1-rho) w_y l(theta; x, y) - rho w_-y l(theta; x, -y)) / (1-2 rho)
//
// with class weights w of the true labels. It is convex since l(x, y) - l(x, -y) is linear in theta, if the weights are
// at most (1-rho)/rho apart. The correction costs variance: the gradient grows by up to (1-rho)/(1-2 rho). Values can
// be negative.
//
// It uses that h(s; -y) = h(s; y) + y s.
type denoised struct {
	logistic
	own, other [2]float64 // what h(s; y) and -h(s; -y) count, for y = -1 and +1
}

// denoise corrects for a probability in [0, 1/2), with class weights of -1 and +1, or nil for none.
func denoise(rho float64, weights []float64) (Loss, error) {
	if weights == nil {
		weights = []float64{1, 1}
	}
	var d denoised
	for i, w := range weights {
		d.own[i] = (1 - rho) * w / (1 - 2*rho)
		d.other[i] = rho * weights[1-i] / (1 - 2*rho)
		if !(d.own[i] > d.other[i]) {
			return nil, &ParameterError{labelNoise, rho,
				fmt.Sprintf("class weights less than a factor %v apart: with %v and %v the corrected loss is not convex",
					(1-rho)/rho, weights[0], weights[1])}
		}
	}
	return Linear[denoised]{d}, nil
}

func (l denoised) at(y float64) (keep, tilt float64) {
	i := 0
	if y > 0 {
		i = 1
	}
	return l.own[i] - l.other[i], float64(l.other[i] * y)
}

func (l denoised) value(s, y float64) float64 {
	keep, tilt := l.at(y)
	return float64(keep*l.logistic.value(s, y)) - float64(tilt*s)
}

func (l denoised) slope(s, y, c float64) float64 {
	keep, tilt := l.at(y)
	return float64(keep*l.logistic.slope(s+float64(c*tilt), y, c*keep)) - tilt
}

// lipschitz returns the Lipschitz constant. It is attained far on the wrong side of the larger class.
func (l denoised) lipschitz(x float64) float64 { return slices.Max(l.own[:]) * l.logistic.lipschitz(x) }

func (l denoised) smoothness(x float64) float64 {
	return max(l.own[0]-l.other[0], l.own[1]-l.other[1]) * l.logistic.smoothness(x)
}
