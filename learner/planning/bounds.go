package planning

import "math"

// This file holds the risk bounds that plans minimise. Symbols, in the units of theta and of the loss:
//
//	D0     distance of the start from the optimum, at most the radius
//	L      clip norm
//	m, T   users in a cohort, steps
//	s2, r2 variance of one coordinate of the mean gradient due to privacy noise and to rounding
//	V      bound on E||gbar - grad F||^2
//	beta   smoothness of the mean loss over the population

// OracleVariance returns V = L^2/m + d (s2 + r2): the sampling of m users, privacy noise and rounding (Cheu, Joseph,
// Mao, Peng, ICLR 2022, Theorem 3.2).
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

// weightedBound returns PSGDBound of a mu-strongly convex objective for an average in which the t-th point
// weighs (1 - mu eta)^-(t+1): mu D0^2/(2 ((1 - mu eta)^-T - 1)) + eta G^2/2, never above PSGDBound (Lowy,
// Razaviyayn, ICLR 2023, Theorem D.1; Stich 2019, Lemma 2).
func weightedBound(distance, secondMoment, stepSize, mu float64, steps uint64) float64 {
	return distance*distance/(2*stepSize*weights(stepSize, mu, steps)) + stepSize*secondMoment/2
}

// weights returns the sum of (1 - mu eta)^-(t+1) over t < T.
func weights(stepSize, mu float64, steps uint64) float64 {
	return math.Expm1(-float64(steps)*math.Log1p(-mu*stepSize)) / (mu * stepSize)
}

// PAGDCurvature returns v = max(2 beta, sqrt(2 V T (T+1)(T+2)/3)/D0), which minimises PAGDBound over the admissible v
// >= 2 beta.
func PAGDCurvature(distance, smoothness, variance float64, steps uint64) float64 {
	t := float64(steps)
	return max(2*smoothness, math.Sqrt(2*variance*t*(t+1)*(t+2)/3)/distance)
}

// PAGDBound bounds the expected excess risk of PAGD's aggregate for an objective that is mu-strongly convex and smooth
// with constant beta: 2 v D0^2/(T(T+1)) + 4 V (T+2)/(3 v) where v >= 2 beta (Ghadimi & Lan 2012, with their step-size
// policy). Where the steps use mu > 0, the sampling term is at most 8 V/(mu (T+1)) too, and then v >= beta is enough
// (Proposition 9). It is +Inf where v is too small for either.
func PAGDBound(distance, variance, v, beta, mu float64, steps uint64) float64 {
	t := float64(steps)
	noise := math.Inf(1)
	if v >= 2*beta {
		noise = 4 * variance * (t + 2) / (3 * v)
	}
	if mu > 0 && v >= beta {
		noise = min(noise, 8*variance/(mu*(t+1)))
	}
	return 2*v*distance*distance/(t*(t+1)) + noise
}

// envelopeGap returns L^2/(2B), the largest gap between an L-Lipschitz loss and its Moreau envelope.
func envelopeGap(lipschitz, smoothing float64) float64 {
	return lipschitz * lipschitz / (2 * smoothing)
}

// envelopeSmoothing returns the B that minimises PAGDBound at the smoothness B plus envelopeGap (Theorem 4.7). The
// bound falls in B until v = 2B, since v can be had for nothing until then, and from there on it is a B + c/B with a =
// 4 D0^2/(T(T+1)) and c = L^2/2 + 2V(T+2)/3, which is smallest at sqrt(c/a), never before that point.
func envelopeSmoothing(lipschitz, distance, variance float64, steps uint64) float64 {
	t := float64(steps)
	return math.Sqrt((lipschitz*lipschitz/2+2*variance*(t+2)/3)*t*(t+1)) / (2 * distance)
}

// empiricalSmoothness returns a bound that the smoothness of the mean loss of n users exceeds with at most the
// given probability, in dimension d, if one example's smoothness is at most each and the population's at most
// mean: (1 + delta) mean with
//
//	delta^2/(2 + 2 delta/3) = ln(d/probability) each/(n mean),
//
// and never more than each (Tropp, User-friendly tail bounds for sums of random matrices, 2012, Theorem 1.1).
func empiricalSmoothness(each, mean float64, users uint64, dim int, probability float64) float64 {
	if mean >= each {
		return each
	}
	s := math.Log(float64(dim)/probability) * each / (float64(users) * mean)
	return min(each, mean*(1+s/3+math.Sqrt(s*s/9+2*s)))
}

// restartDistance returns sqrt(2 r/lambda), which bounds the root of the expected squared distance from the optimum of
// a lambda-strongly convex objective, for a point of expected excess risk r.
func restartDistance(risk, ridge float64) float64 { return math.Sqrt(2 * risk / ridge) }

// populationBound bounds the expected excess risk on the population of a point whose expected excess risk on the mean
// loss of some users is gap, where the objective is lambda-strongly convex: L move/lambda for the minimiser of the mean
// loss, whose gradient a replaced user changes by at most move (2 L/n for n users), and L' sqrt(2 gap/lambda) for the
// distance to it, where L' bounds the gradient of loss and ridge together.
func populationBound(gap, lipschitz, regular, ridge, move float64) float64 {
	return lipschitz*move/ridge + regular*restartDistance(gap, ridge)
}

// restartPhases returns k = max(1, ceil(log2 log2 n)), the phases of Theorem 4.8.
func restartPhases(users uint64) int {
	if users < 4 {
		return 1
	}
	return max(1, int(math.Ceil(math.Log2(math.Log2(float64(users))))))
}

// streamBound bounds the expected excess risk of Stream's model after the H steps it was planned for, G^2 bounding the
// second moment of an estimate. Its t-th point has weight w_t = 4t(t+1)(t+2)/(H(H+1)(H+2)(H+3)), and the sum over t of
// w_t times
//
//	F(theta_{t-1}) - F* <= (d_{t-1} - d_t)/(2 eta_t) + eta_t G^2/2,   d_t = E||theta_t - theta*||^2,
//
// is by parts at most the following. Constant steps: d_t <= D0^2 + t eta^2 G^2, hence
//
//	2 D0^2/(eta (H+3)) + eta G^2 (3(H-1)/(2(H+3)) + 1/2).
//
// Decaying steps eta sqrt(H/t): d_t is at most the squared diameter, (2R)^2, and the mean of t^-1/2 under w at most
// sqrt(4/(3H)), hence 8 R^2/(eta (H+3)) + eta G^2/sqrt 3.
func streamBound(distance, radius, secondMoment, stepSize float64, horizon uint64, decaying bool) float64 {
	h := float64(horizon)
	if decaying {
		return 8*radius*radius/(stepSize*(h+3)) + stepSize*secondMoment/math.Sqrt(3)
	}
	return 2*distance*distance/(stepSize*(h+3)) + stepSize*secondMoment*(1.5*(h-1)/(h+3)+0.5)
}
