package model

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Prediction is what a model says about one event.
type Prediction struct {
	// Scores are linear: of the positive class, or one a class; of a number in the units of the label; of a count the logarithm
	// of what is expected.
	Scores []float64
	// Probabilities are of the positive class, or one a class; none where the loss has none.
	Probabilities []float64
	Class         string  // the label of the predicted class, as the task file writes it first; empty for regression
	Value         float64 // of a number or a count: the prediction in the units of the label; NaN for classes
}

// Predict writes what the model says about a mapped event to dst, reusing its memory.
func (p Predictor) Predict(e convex.Example, dst *Prediction) {
	dst.Scores, dst.Probabilities, dst.Class, dst.Value = dst.Scores[:0], dst.Probabilities[:0], "", math.NaN()
	dst.Scores = p.Features.Scores(dst.Scores, p.Theta, e)
	predicted := p.Features.Predict(dst.Scores)
	switch {
	case p.Features.Classification():
		dst.Class = p.Features.ClassName(predicted)
		dst.Probabilities = p.probabilities(dst.Probabilities, dst.Scores)
	case p.Loss.Name() == poisson:
		dst.Value = predicted
	default:
		dst.Value, dst.Scores[0] = predicted, predicted
	}
}
