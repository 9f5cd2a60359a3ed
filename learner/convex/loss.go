package convex

import (
	"fmt"
	"math"
)

// A Loss is a function l(theta; e), convex and differentiable in theta for every example e whose label passes
// CheckLabel. Implementations are values without state, safe for concurrent use.
type Loss interface {
	// Name is the loss's name in task files, as NewLoss takes it.
	Name() string
	// Parameters is the length of theta for a feature vector of the given dimension: the same number for a loss of one
	// linear score, k times it for one score a class.
	Parameters(features int) int
	// Value returns l(theta; e).
	Value(theta []float64, e Example) float64
	// Gradient overwrites dst, of the length of theta, with the gradient at theta. dst must not share memory with theta.
	Gradient(dst, theta []float64, e Example)
	// Lipschitz is the supremum of the gradient's norm over all theta and labels, for features of norm at most x; +Inf
	// where there is none.
	Lipschitz(x float64) float64
	// Smoothness is the Lipschitz constant of the gradient over all theta and labels, for features of norm at most x;
	// +Inf where there is none.
	Smoothness(x float64) float64
	// CheckLabel refuses a label outside the domain of the loss. The error says what would be accepted.
	CheckLabel(y float64) error
}

// NewLoss returns the loss of the given name: "logistic" or "squared".
func NewLoss(name string) (Loss, error) {
	switch name {
	case "logistic":
		return Logistic{}, nil
	case "squared":
		return Squared{}, nil
	}
	return nil, fmt.Errorf("loss: unknown name %q, want logistic or squared", name)
}

// linearGradient writes h'(z) x, the gradient of a loss of one linear score.
func linearGradient(dst []float64, e Example, derivative float64) {
	clear(dst)
	e.AddTo(dst, derivative)
}

func checkFinite(y float64) error {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return fmt.Errorf("label: not finite, want a finite number")
	}
	return nil
}
