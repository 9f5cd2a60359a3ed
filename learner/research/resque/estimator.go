package resque

import "math"

// LogWeight returns the log of gamma_rho(v - xi)/gamma_rho(xi), the weight at the displacement v = x - centre
// of a query at centre + xi.
func LogWeight(v, xi []float64, rho float64) float64 { return (dot(v, xi) - dot(v, v)/2) / (rho * rho) }

// secondMoment returns exp(s^2): E w^2 at displacements of s rho, and with E||g||^2 <= L^2 a bound of E||w
// g||^2/L^2 for shorter ones.
func secondMoment(s float64) float64 { return math.Exp(s * s) }
