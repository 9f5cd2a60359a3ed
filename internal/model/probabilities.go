package model

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// traits returns the loss's row of the table of losses.
func (p Predictor) traits() convex.Traits { return convex.TraitsOf(p.Loss.Name()) }

// Probabilities is a kind of probabilities, by what they may be used for.
type Probabilities string

// What probabilities are worth.
const (
	// OfModel marks the probabilities of the declared model, fitted as it says.
	OfModel Probabilities = "of the model"
	// Uncalibrated ones order events and no more: gradients were clipped or classes weighted, so another loss was
	// minimized than the one that gives scores their meaning.
	Uncalibrated Probabilities = "uncalibrated"
	// ofPublic marks probabilities that were made frequencies on public examples, see Snapshot.Calibrate.
	ofPublic Probabilities = "calibrated on public data"
)

// ProbabilitiesOf returns the kind of probabilities of a task, where clips reports whether its plan clips gradients;
// empty if the loss has no probabilities.
func ProbabilitiesOf(spec *task.Spec, clips bool) Probabilities {
	m := spec.Model
	weighted := slices.ContainsFunc(m.ClassWeights, func(w float64) bool { return w != m.ClassWeights[0] })
	switch {
	case !convex.TraitsOf(m.Loss).Scores.Probable():
		return ""
	case clips || weighted:
		return Uncalibrated
	}
	return OfModel
}

// probabilities appends what the loss takes the scores for.
func (p Predictor) probabilities(dst, scores []float64) []float64 {
	switch p.traits().Scores {
	case convex.LogOdds:
		return append(dst, sigmoid(scores[0]))
	case convex.LogProbabilities:
		top, sum := slices.Max(scores), 0.0
		for _, z := range scores {
			dst = append(dst, math.Exp(z-top))
			sum += dst[len(dst)-1]
		}
		for i := range dst {
			dst[i] /= sum
		}
	}
	return dst
}

// sigmoid returns 1/(1 + exp(-z)), without overflow.
func sigmoid(z float64) float64 {
	if z >= 0 {
		return 1 / (1 + math.Exp(-z))
	}
	t := math.Exp(z)
	return t / (1 + t)
}
