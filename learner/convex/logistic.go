package convex

import (
	"fmt"
	"math"
)

// Logistic is the logistic loss ln(1 + exp(-y <theta, x>)) for labels y = -1 or +1.
//
// The slope is below 1 and the curvature at most 1/4 in the score, hence it is X-Lipschitz and X^2/4-smooth for
// features of norm at most X.
type Logistic struct{}

// Name returns "logistic".
func (Logistic) Name() string { return "logistic" }

// Parameters returns the number of features.
func (Logistic) Parameters(features int) int { return features }

// Value returns ln(1 + exp(-y <theta, x>)), accurate for margins of any size.
func (Logistic) Value(theta []float64, e Example) float64 {
	m := e.Label * e.Dot(theta)
	if m < 0 {
		return -m + math.Log1p(math.Exp(m))
	}
	return math.Log1p(math.Exp(-m))
}

// Gradient writes -y x / (1 + exp(y <theta, x>)).
func (Logistic) Gradient(dst, theta []float64, e Example) {
	linearGradient(dst, e, -e.Label*sigmoid(-e.Label*e.Dot(theta)))
}

// Lipschitz returns x.
func (Logistic) Lipschitz(x float64) float64 { return x }

// Smoothness returns x^2/4.
func (Logistic) Smoothness(x float64) float64 { return x * x / 4 }

// CheckLabel accepts -1 and +1.
func (Logistic) CheckLabel(y float64) error {
	if y != -1 && y != 1 {
		return fmt.Errorf("label: outside the domain of the logistic loss, want -1 or +1")
	}
	return nil
}

// sigmoid is 1/(1 + exp(-z)); exp is only taken of what cannot overflow.
func sigmoid(z float64) float64 {
	if z >= 0 {
		return 1 / (1 + math.Exp(-z))
	}
	t := math.Exp(z)
	return t / (1 + t)
}
