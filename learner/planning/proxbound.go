package planning

import "math"

// A proxBound bounds the expected excess risk of method.Prox over P rounds (docs/reference/bounds.md has the proof).
type proxBound struct {
	rounds   uint64  // P
	average  uint64  // m, of the last ones
	reports  uint64  // M
	units    uint64  // K of a report
	distance float64 // D
	loss     float64 // L
	beta     float64 // smoothness of one unit's loss
	steps    uint64  // k of an answer; 0: ProxSteps
	again    bool    // the same units are in every round, else new ones
	// spread bounds the root mean square distance of the silos' mean gradients from the mean over all silos, at
	// any one point; 0 for silos that are alike.
	spread float64
	// noise is E||e||^2 of a round's answer, in units of 1/lambda^2, and rounding the part of it from stochastic rounding.
	noise, rounding float64
}

// ProxSteps returns the steps of size 1/(beta + lambda) that an answer takes: three times the condition number (beta +
// lambda)/lambda, which leave at most e^-3 of the way to the minimiser and make the bound at most a nineteenth larger.
func ProxSteps(weight, smoothness float64) uint64 {
	return uint64(math.Ceil(3 * (smoothness + weight) / weight))
}

// share returns rho = 1 - (1 - eta lambda)^k.
func (b proxBound) share(weight float64) float64 {
	k := b.steps
	if k == 0 {
		k = ProxSteps(weight, b.beta)
	}
	return -math.Expm1(float64(k) * math.Log1p(-weight/(b.beta+weight)))
}

// risk returns the bound for a weight lambda, of the mean over the last h+1 .. P = h+m rounds:
//
//	(nu/2)(D^2 + (P-1) s^2)/m + G P/m + L s/sqrt m + generalisation,   nu = lambda/rho,  s^2 = E||e||^2
func (b proxBound) risk(weight float64) float64 {
	rho := b.share(weight)
	nu, p, m := weight/rho, float64(b.rounds), float64(b.average)
	square := b.noise / weight / weight
	apart, general := b.differences(weight, rho)
	return nu/2*(b.distance*b.distance+(p-1)*square)/m + apart*p/m + b.loss*math.Sqrt(square/m) + general
}

// differences returns the bound's terms for the difference between a round's silos and units and the population, and
// the final term if the same silos are in every round.
func (b proxBound) differences(weight, rho float64) (apart, general float64) {
	apart = b.spread * b.spread / (2 * (weight/rho + weight))
	if b.reports == 1 {
		apart = 0
	}
	move := 2 * b.loss * rho / (weight * float64(b.units)) // of a silo's answer by one unit
	all := move / float64(b.reports)                       // of their mean
	if !b.again {
		worst := b.loss * b.loss / (2 * (weight/rho + weight))
		return min(apart+b.loss*move, worst+b.loss*all), 0
	}
	p, m := float64(b.rounds), float64(b.average)
	at := p - (m-1)/2 // mean round of those that are averaged
	return apart, b.loss * (all*at + math.Sqrt(2*b.rounding*at)/weight)
}

// best returns the weight with the smallest bound, of at least least.
func (b proxBound) best(least float64) float64 {
	guess := b.loss / b.distance
	return smallest(max(least, guess/1e6), max(least, guess*1e4), b.risk)
}
