package planning

import "math"

// A gradientBound bounds the expected excess risk of PGD: of the average of theta_0 .. theta_{T-1}, where theta_{t+1} =
// Pi(theta_t - eta gbar_t) and gbar_t is the gradient of the mean loss of the same m users, with noise (Cheu, Joseph,
// Mao, Peng, ICLR 2022, Theorem 4.9; docs/reference/bounds.md has the proof). The variance of its situation is without
// sampling.
type gradientBound struct {
	situation
	loss  float64 // L of the loss
	whole float64 // L of the loss with the ridge
	beta  float64 // smoothness of the users' mean loss with the ridge
	ridge float64
}

// stability returns the generalisation error that one unit of step size adds: L times the distance of the
// averages after one user was replaced. One step of size eta <= 2/beta does not pull two points apart, the
// replaced user moves them by 2 eta L/m, and stochastic rounding, whose distribution depends on the point, by
// independent errors of second moment 2 eta^2 r:
//
//	||average - average'|| <= eta (L T/m + (2/3) sqrt(2 r T))
//
// (Hardt, Recht, Singer 2016, for whole gradients). If each round has M of N silos, drawn for it, m counts the units of
// all N: the replaced unit is in a round with probability M/N, and moves it by N/M times as much.
func (b gradientBound) stability() float64 {
	t := float64(b.steps)
	apart := func(move float64) float64 { return b.loss * (move*t/2 + math.Sqrt(2*b.rounding*t)*2/3) }
	return apart(2 * b.loss / float64(b.users))
}

// risk returns the bound for a step size; +Inf if the step is too long for the stability argument. For the error on the
// users' own mean loss it takes the smaller of
//
//	D^2/(2 eta T) + eta (L'^2 + V)/2                              (Lemma 4.2)
//	D^2/(2 eta T) + eta V/(2 (1 - eta beta)) + E[F(theta_0) - F(theta_T)]/T   for eta < 1/beta (the descent lemma)
func (b gradientBound) risk(eta float64) float64 {
	if eta > (1+1e-12)*2/(b.beta+b.ridge) {
		return math.Inf(1)
	}
	t, slope := float64(b.steps), b.stability()
	rest := (b.whole*b.whole + b.variance) * eta / 2
	if eta*b.beta < 1 {
		rest = min(rest, b.variance*eta/(2*(1-eta*b.beta))+(b.prior+2*eta*slope)/t)
	}
	return b.distance*b.distance/(2*eta*t) + rest + eta*slope
}

// weighted returns the bound for an average in which the t-th point weighs q^-(t+1), q = 1 - lambda eta. A step
// pulls two points together by q, so that a gradient moved by m at every step has moved theta_t by (m/lambda)(1
// - q^t), and rounding by a root of 2 eta^2 r (1 - q^2t)/(1 - q^2). Both bounds on the error on the users' own
// mean loss are as in risk, with T replaced by the sum of weights; the second is divided by q and includes the
// last point's own generalisation times its weight.
func (b gradientBound) weighted(eta float64) float64 {
	t, share := float64(b.steps), b.ridge*eta
	if eta > (1+1e-12)*2/(b.beta+b.ridge) || share >= 1 {
		return math.Inf(1)
	}
	q := 1 - share
	last := -math.Expm1(t * math.Log1p(-share)) // 1 - q^T
	sum := last / ((1 - last) * share)
	apart := func(move, single, double float64) float64 { // with the means of 1 - q^t and 1 - q^2t
		return b.loss * (move/b.ridge*single + eta*math.Sqrt(2*b.rounding*double/(1-q*q)))
	}
	gen := func(single, double float64) float64 {
		return apart(2*b.loss/float64(b.users), single, double)
	}
	start := b.distance * b.distance / (2 * eta * sum)
	rest := start + (b.whole*b.whole+b.variance)*eta/2
	if eta*b.beta < 1 {
		rest = min(rest, (start+b.variance*eta/(2*(1-eta*b.beta))+b.prior/sum)/q+gen(last, last*(2-last))*share/(q*last))
	}
	return rest + gen(max(0, 1-t/(q*sum)), max(0, 1-last/(q*share*sum)))
}
