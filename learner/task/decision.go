package task

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// Classification reports whether the label is a class, one of two or of several, rather than a number or a count.
func (m *FeatureMap) Classification() bool { return m.label.kind.classes() }

// Outputs is the number of scores of an event: one for each class of softmax, one for every other loss. Parameters are that
// many blocks of Dim.
func (m *FeatureMap) Outputs() int {
	if m.label.kind == manyClasses {
		return len(m.label.names)
	}
	return 1
}

// Classes names the classes in the order of the loss, negative before positive; nil where the label is no class. The caller
// must not change it.
func (m *FeatureMap) Classes() []string { return m.label.names }

// Labels returns the extreme labels as the loss sees them: -1 and 1, every class of softmax, the scaled bounds of a number, 0
// and the largest count.
func (m *FeatureMap) Labels() []float64 {
	switch m.label.kind {
	case twoClasses:
		return []float64{-1, 1}
	case manyClasses:
		out := make([]float64, len(m.label.names))
		for i := range out {
			out[i] = float64(i)
		}
		return out
	}
	return []float64{m.label.affine.apply(m.label.affine.low), m.label.affine.apply(m.label.affine.high)}
}

// Scores overwrites dst with the scores of a mapped event, the inner products with the blocks of theta, and returns it. It grows dst
// to length Outputs where it is shorter.
func (m *FeatureMap) Scores(dst, theta []float64, e convex.Example) []float64 {
	dst = slices.Grow(dst[:0], m.Outputs())[:m.Outputs()]
	for k := range dst {
		dst[k] = e.Dot(theta[k*m.dim : (k+1)*m.dim])
	}
	return dst
}

// Predict turns the scores of a mapped event into a prediction: the class as the loss sees it (+1 where the score is positive and -1
// elsewhere; of several the one of the largest score, the first among equals), the number in the units of the data, or the expected count.
func (m *FeatureMap) Predict(scores []float64) float64 {
	switch m.label.kind {
	case twoClasses:
		if scores[0] > 0 {
			return 1
		}
		return -1
	case manyClasses:
		best := 0
		for k, z := range scores {
			if z > scores[best] {
				best = k
			}
		}
		return float64(best)
	case count:
		return math.Exp(min(scores[0], m.scoreBound)) // the slope of the loss's exponential
	}
	return m.label.affine.invert(scores[0])
}

// Decide is Predict for a loss of one score.
func (m *FeatureMap) Decide(score float64) float64 { return m.Predict([]float64{score}) }

// Target turns the label of a mapped event into what Predict is compared with: the class, or the number or count in the
// units of the data (moved into the declared bounds).
func (m *FeatureMap) Target(label float64) float64 {
	if m.label.kind == number {
		return m.label.affine.invert(label)
	}
	return label
}

// ClassName is the name of a class that Predict or Target returned.
func (m *FeatureMap) ClassName(class float64) string {
	if m.label.kind == twoClasses {
		return m.label.names[int(class+1)/2]
	}
	return m.label.names[int(class)]
}
