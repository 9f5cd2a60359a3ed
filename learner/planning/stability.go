package planning

import "math"

// A gradientBound bounds the expected excess risk of PGD: of the average of theta_0 .. theta_{T-1}, where theta_{t+1} =
// Pi(theta_t - eta gbar_t) and gbar_t is the gradient of the mean loss of the same m users, with noise (Cheu, Joseph, Mao, Peng,
// ICLR 2022, Theorem 4.9; docs/bounds.md has the proof). The variance of its situation is without sampling.
type gradientBound struct {
	situation
	loss  float64 // L of the loss
	whole float64 // L of the loss with the ridge
	beta  float64 // smoothness of the users' mean loss with the ridge
	ridge float64
}

// stability returns what one unit of step size adds to the generalisation error: L times the distance of the averages after
// one user was replaced. One step of size eta <= 2/beta does not pull two points apart, the replaced user moves them by 2 eta L/m,
// and stochastic rounding, whose distribution depends on the point, by independent errors of second moment 2 eta^2 r:
//
//	||average - average'|| <= eta (L T/m + (2/3) sqrt(2 r T))
//
// (Hardt, Recht, Singer 2016, for whole gradients).
func (b gradientBound) stability() float64 {
	t := float64(b.steps)
	return b.loss * (b.loss*t/float64(b.users) + math.Sqrt(2*b.rounding*t)*2/3)
}

// risk returns the bound for a step size, +Inf where it is too long for the argument of stability. Of the error on the users' own
// mean loss it takes the smaller of
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
