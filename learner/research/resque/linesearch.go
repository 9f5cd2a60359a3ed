package resque

import "math"

// search finds a strength whose subproblem has its minimizer away from the edge of the ball, and either far from
// the centre, which is worth much, or the least strength. m measures the minimizer's distance from the centre
// within r/17. It begins where the last step was.
//
// Distances fall from more than 0.9 r at lo to less than 0.6 r at hi, where at the largest strength they are at
// most L/most = r/2. They change by at most 0.172 reach + r per unit of log lambda (docs/proofs/resque.md), so once
// lo and hi are closer than 0.18 r of it no measurement was within r/17, and hi is what is left; so it is after as
// many probes as there may be. Where the least strength has its minimizer away from the edge whatever f is, it is returned
// and nothing is measured.
func (f ballPlan) search(last float64, m func(lambda float64) (float64, error)) (float64, strength, error) {
	if f.sure() {
		return f.least, least, nil
	}
	lo, hi, tried := f.least, f.most, false
	slope := 0.172*f.reach + f.r
	for lambda, probe := last, 0; ; probe++ {
		way, err := m(lambda)
		if err != nil {
			return 0, 0, err
		}
		atLeast := lambda == f.least
		switch {
		case way > 0.9*f.r:
			lo, tried = max(lo, lambda), true
		case atLeast:
			return lambda, least, nil
		case way >= 0.6*f.r:
			return lambda, searched, nil
		default:
			hi = min(hi, lambda)
		}
		switch {
		case probe+1 == f.probes:
			return hi, uncertified, nil
		case tried && math.Log(hi/lo)*slope < 0.18*f.r:
			return hi, uncertified, nil
		case probe == 0 && way > 0.9*f.r && 2*lambda < hi:
			lambda *= 2
		case probe == 0 && way < 0.6*f.r:
			lambda = max(f.least, lambda/2)
		case !tried: // everything so far was too strong
			lambda = f.least
		default:
			lambda = math.Sqrt(lo * hi)
		}
	}
}
