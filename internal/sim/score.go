package sim

import "github.com/panlearn/panlearn/learner/convex"

// MeanLoss returns the average loss of theta on the examples, 0 if there are none.
func MeanLoss(loss convex.Loss, theta []float64, examples []convex.Example) float64 {
	var s float64
	for _, e := range examples {
		s += loss.Value(theta, e)
	}
	return s / float64(max(1, len(examples)))
}

// Accuracy returns the share of examples with labels -1 and +1 that have a score of the label's sign; a score of zero
// counts as -1.
func Accuracy(theta []float64, examples []convex.Example) float64 {
	var right int
	for _, e := range examples {
		if (e.Dot(theta) > 0) == (e.Label > 0) {
			right++
		}
	}
	return float64(right) / float64(max(1, len(examples)))
}
