package convex

import "fmt"

// Quantile is the pinball loss max(tau (y - s), (1-tau) (s - y)) of the score s = <theta, x>, for finite labels; its
// population minimizer is the tau-quantile of y given x (Koenker & Bassett 1978). It is max(tau, 1-tau) X-Lipschitz for
// features of norm at most X, and not smooth. At tau = 1/2 it is half the absolute loss.
type Quantile struct {
	linear
	Level float64 // tau, in (0, 1)
}

// NewQuantile returns the loss of a level in (0, 1).
func NewQuantile(level float64) (Quantile, error) {
	if !(level > 0 && level < 1) {
		return Quantile{}, fmt.Errorf("level: %v, want a number above 0 and below 1", level)
	}
	return Quantile{Level: level}, nil
}

// Name returns "quantile".
func (Quantile) Name() string { return "quantile" }

// Value returns max(tau (y - s), (1-tau) (s - y)), s = <theta, x>.
func (l Quantile) Value(theta []float64, e Example) float64 { return linearValue(l, theta, e) }

// Gradient writes (1-tau) x above y, -tau x below, and 0 where the prediction is exact.
func (l Quantile) Gradient(dst, theta []float64, e Example) { linearGradient(l, dst, theta, e) }

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2, in closed form.
func (l Quantile) Prox(dst, theta []float64, e Example, b float64) { linearProx(l, dst, theta, e, b) }

func (l Quantile) envelopeValue(theta []float64, e Example, b float64) float64 {
	return linearEnvelopeValue(l, theta, e, b)
}

func (l Quantile) envelopeGradient(dst, theta []float64, e Example, b float64) {
	linearEnvelopeGradient(l, dst, theta, e, b)
}

// Lipschitz returns x max(tau, 1-tau).
func (l Quantile) Lipschitz(x float64) float64 { return x * max(l.Level, 1-l.Level) }

// Smoothness returns +Inf for x > 0: the slope jumps.
func (Quantile) Smoothness(x float64) float64 { return unbounded(x) }

// CheckLabel accepts every finite number.
func (Quantile) CheckLabel(y float64) error { return checkFinite(y) }

func (l Quantile) value(s, y float64) float64 {
	r := s - y
	return max(-l.Level*r, (1-l.Level)*r)
}

func (l Quantile) slope(s, y, c float64) float64 { return clamp(s-y, c, -l.Level, 1-l.Level) }
