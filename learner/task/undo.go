package task

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Undo converts the parameters of one score, a block of length Dim, into weights and an intercept in the units of the data, so
// that for a row within the declared bounds (that is not scaled down)
//
//	sum_j weights[j] base_j + intercept
//
// is the score of a classifier (the log odds of the positive class under logistic loss, the log probability of a class up to a
// constant under softmax), the logarithm of the expected count, or, for a number, the prediction in the units of the label. weights[j]
// belongs to Coordinates()[j], which says what base_j is: of a numeric column the value of the field itself.
func (m *FeatureMap) Undo(theta []float64) (weights []float64, intercept float64, err error) {
	if len(theta) != m.dim {
		return nil, 0, fmt.Errorf("undo feature map: %d parameters, want %d", len(theta), m.dim)
	}
	weights = make([]float64, len(m.coordinate))
	if m.intercept != 0 {
		intercept = theta[m.dim-1] * m.intercept
	}
	for j, c := range m.coordinate {
		weights[j] = theta[j] * c.Factor
		intercept += theta[j] * c.Offset
	}
	if m.label.kind == convex.Numbers {
		for j := range weights {
			weights[j] /= m.label.affine.a
		}
		intercept = m.label.affine.invert(intercept)
	}
	for _, v := range append(weights[:len(weights):len(weights)], intercept) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, 0, fmt.Errorf("undo feature map: a weight is not finite in the units of the data")
		}
	}
	return weights, intercept, nil
}

// Redo is the inverse of Undo: the parameters that score mapped rows as the weights score raw ones. Rows outside
// the bounds are then treated as on the device. Without an intercept coordinate the intercept must be what Undo gives.
func (m *FeatureMap) Redo(weights []float64, intercept float64) ([]float64, error) {
	if len(weights) != len(m.coordinate) {
		return nil, fmt.Errorf("redo feature map: %d weights, want %d", len(weights), len(m.coordinate))
	}
	factor := 1.0
	rest := intercept
	if m.label.kind == convex.Numbers {
		factor = m.label.affine.a
		rest = intercept*m.label.affine.a + m.label.affine.b
	}
	theta := make([]float64, m.dim)
	for j, c := range m.coordinate {
		theta[j] = weights[j] * factor / c.Factor
		rest -= theta[j] * c.Offset
	}
	if m.intercept != 0 {
		theta[m.dim-1] = rest / m.intercept
	}
	for _, v := range theta {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("redo feature map: a parameter is not finite in the coordinates of the map")
		}
	}
	return theta, nil
}
