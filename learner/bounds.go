package learner

import "math"

// This file holds the risk bounds that plans minimise. Symbols, in the units of theta and of the loss:
//
//	D0     distance of the start from the optimum, at most the radius
//	L      clip norm
//	m, T   users in a cohort, steps
//	s2, r2 variance of one coordinate of the mean gradient due to privacy noise and to rounding
//	V      bound on E||gbar - grad F||^2
//	beta   smoothness of the loss

// OracleVariance returns V = L^2/m + d (s2 + r2): the sampling of m users, privacy noise and rounding (Cheu, Joseph, Mao,
// Peng, ICLR 2022, Theorem 3.2).
func OracleVariance(clipNorm float64, users uint64, dim int, privacy, rounding float64) float64 {
	return clipNorm*clipNorm/float64(users) + float64(dim)*(privacy+rounding)
}

// PSGDStepSize returns eta = D0/(G sqrt T), which minimises PSGDBound; G^2 = L^2 + V bounds the second moment of an
// estimate.
func PSGDStepSize(distance, secondMoment float64, steps uint64) float64 {
	return distance / math.Sqrt(secondMoment*float64(steps))
}

// PSGDBound returns D0^2/(2 eta T) + eta G^2/2, which bounds the expected excess risk of PSGD's average (Cheu, Joseph,
// Mao, Peng, ICLR 2022, Lemma 4.2).
func PSGDBound(distance, secondMoment, stepSize float64, steps uint64) float64 {
	return distance*distance/(2*stepSize*float64(steps)) + stepSize*secondMoment/2
}

// PAGDCurvature returns v = max(2 beta, damping sqrt(2 V T (T+1)(T+2)/3)/D0). Damping 1 minimises PAGDBound over the
// admissible v >= 2 beta; a smaller factor takes longer steps, which the bound pays for and practice likes.
func PAGDCurvature(distance, smoothness, variance, damping float64, steps uint64) float64 {
	t := float64(steps)
	return max(2*smoothness, damping*math.Sqrt(2*variance*t*(t+1)*(t+2)/3)/distance)
}

// PAGDBound returns 2 v D0^2/(T(T+1)) + 4 V (T+2)/(3 v), which bounds the expected excess risk of PAGD's aggregate at mu =
// 0 for every v >= 2 beta (Ghadimi & Lan 2012, with their step-size policy).
func PAGDBound(distance, variance, v float64, steps uint64) float64 {
	t := float64(steps)
	return 2*v*distance*distance/(t*(t+1)) + 4*variance*(t+2)/(3*v)
}
