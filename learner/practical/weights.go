package practical

import (
	"fmt"
	"math"
	"slices"
)

const (
	weightNoise = 1.5 // most noise of gradients that are cut for weights, in units of the curvature of the loss
	freeOfNoise = 2   // times the noise without weights, which weights may always bring
)

// weight returns the factor of the loss of an event of class k.
func (p Problem) weight(k int) float64 {
	if p.Loss.ClassWeights == nil {
		return 1
	}
	return p.Loss.ClassWeights[k]
}

// heaviest returns the largest weight of a class. Gradients are cut in units of it: cut to the length of other
// classes' gradients, the heaviest class's would count as if it had no weight.
func (p Problem) heaviest() float64 {
	if p.Loss.ClassWeights == nil {
		return 1
	}
	return slices.Max(p.Loss.ClassWeights)
}

// CheckWeights refuses class weights under which the noise of gradients hides the rows. Gradients are as long as the
// heaviest class needs and their noise as large, while the curvature of the loss grows with the mean weight alone.
// Shares of the classes are not known before the first look: the weights are taken to balance them, so that every class
// counts as much. In scaled coordinates a row has norm sqrt(d).
func (p Problem) CheckWeights(l Layout) error {
	if p.Loss.ClassWeights == nil || p.Clip > 0 {
		return nil
	}
	k := float64(p.classes())
	kappa := p.Loss.ClassShape().Noise
	slope, curvature := 0.5, 0.25 // of every loss of one score: the limit was chosen with the logistic loss
	if p.Blocks() > 1 {
		slope, curvature = math.Sqrt(1-1/k), 1/k
	}
	plain := kappa * p.gradientNoise(l) * float64(p.dim()) * classClip * slope / (classCurvature * curvature)
	inverse := 0.0
	for _, w := range p.Loss.ClassWeights {
		inverse += 1 / w
	}
	ratio := p.heaviest() * inverse / k // of the heaviest weight to the mean one
	most := max(weightNoise/plain, freeOfNoise)
	if ratio <= most {
		return nil
	}
	accepted := (k*most - 1) / (inverse - 1/p.heaviest())
	digit := math.Pow(10, math.Floor(math.Log10(accepted))-1)
	return fmt.Errorf(
		"model.class_weights: %v: gradients as long as a weight of %g needs have noise of %.2g times the curvature of the loss, which hides the "+
			"class's rows, of a share of %.2g if the weights balance classes: want a weight of at most %.2g, more users, fewer features or a larger epsilon",
		p.Loss.ClassWeights, p.heaviest(), plain*ratio, 1/(p.heaviest()*inverse), math.Floor(accepted/digit)*digit)
}
