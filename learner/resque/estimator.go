package resque

import "math"

// logWeight is log of gamma_rho(v - xi)/gamma_rho(xi), the weight at the displacement v = x - centre of a query at centre + xi.
func logWeight(v, xi []float64, rho float64) float64 { return (dot(v, xi) - dot(v, v)/2) / (rho * rho) }

// secondMoment is exp(s^2): E w^2 at displacements of s rho, and with E||g||^2 <= L^2 a bound of E||w g||^2/L^2 for shorter ones.
func secondMoment(s float64) float64 { return math.Exp(s * s) }

// A reweighter computes estimates at points around a centre.
type reweighter struct {
	centre []float64
	rho    float64
	v      []float64 // x - centre
}

func newReweighter(centre []float64, rho float64) reweighter {
	return reweighter{centre, rho, make([]float64, len(centre))}
}

// at moves to the point where estimates are wanted.
func (r *reweighter) at(x []float64) {
	for i, c := range r.centre {
		r.v[i] = x[i] - c
	}
}

// weight is that of a query at centre + xi. The estimate of the smoothed gradient is the weight times what was answered.
func (r *reweighter) weight(xi []float64) float64 { return math.Exp(logWeight(r.v, xi, r.rho)) }
