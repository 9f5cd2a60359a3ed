package practical

import (
	"fmt"
	"math"
	"slices"
)

const (
	weightNoise = 1.5 // largest noise of gradients cut for weights, in units of the curvature of the loss
	freeOfNoise = 2   // weights may always increase the noise by this factor
)

// weights are the factors of the loss of an event, by its class; nil means 1 for all.
type weights []float64

func (w weights) of(k int) float64 {
	if w == nil {
		return 1
	}
	return w[k]
}

// heaviest returns the largest weight of a class, the unit of the clip of gradients: cut to the length of other
// classes' gradients, the heaviest class's gradients would lose their weight.
func (w weights) heaviest() float64 {
	if w == nil {
		return 1
	}
	return slices.Max(w)
}

// weighted returns the shares weighted as in the loss, and the mean weight of an event.
func (w weights) weighted(shares []float64) (out []float64, mean float64) {
	if out = slices.Clone(shares); w == nil {
		return out, 1
	}
	for i, factor := range w {
		out[i] *= factor
		mean += out[i]
	}
	for i := range out {
		out[i] /= mean
	}
	return out, mean
}

// CheckWeights refuses class weights under which the noise of gradients hides the rows. Gradients are as long as the
// heaviest class needs and their noise as large, while the curvature of the loss grows with the mean weight alone.
// Shares of the classes are not known before the first look: the weights are taken to balance them, so that every class
// counts as much. In scaled coordinates a row has norm sqrt(d).
func (p Problem) CheckWeights(l Layout) error {
	s := p.shape()
	if s.weights == nil || s.Clip > 0 {
		return nil
	}
	k := float64(s.classes)
	kappa := s.Loss.ClassShape().Noise
	slope, curvature := 0.5, 0.25 // of every loss of one score: the limit was chosen with the logistic loss
	if s.blocks > 1 {
		slope, curvature = math.Sqrt(1-1/k), 1/k
	}
	plain := kappa * s.gradientNoise(l) * float64(s.dim) * classClip * slope / (classCurvature * curvature)
	inverse := 0.0
	for _, w := range s.weights {
		inverse += 1 / w
	}
	ratio := s.weights.heaviest() * inverse / k // of the heaviest weight to the mean one
	most := max(weightNoise/plain, freeOfNoise)
	if ratio <= most {
		return nil
	}
	accepted := (k*most - 1) / (inverse - 1/s.weights.heaviest())
	digit := math.Pow(10, math.Floor(math.Log10(accepted))-1)
	return fmt.Errorf(
		"model.class_weights: %v: gradients as long as a weight of %g needs have noise of %.2g times the curvature of the loss, which hides the "+
			"class's rows, of a share of %.2g if the weights balance classes: want a weight of at most %.2g, more users, fewer features or a larger epsilon",
		s.weights, s.weights.heaviest(), plain*ratio, 1/(s.weights.heaviest()*inverse), math.Floor(accepted/digit)*digit)
}
