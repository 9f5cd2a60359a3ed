package isrl

import (
	"fmt"
	"math"
)

// A vectorSum is P_vec (Algorithm 4, Cheu et al. 2021): each of inputs vectors of norm at most L is rounded at
// random, a coordinate at a time, to one of levels steps over [-L, L], and Bin(trials, p) is added. Only the sums
// of counts are seen. Doubt: the paper asks that g, b and p exist and gives none, and prints a range of L and a
// centre L where 2L and m L are meant.
type vectorSum struct {
	inputs, dim, levels, trials float64 // m, d, g, b
	p                           float64
}

// newVectorSum returns our sizing: p = 1/4, g = max{ceil(2 sqrt(m)), ceil(sqrt(d)), 4}, so that rounding is
// small beside the noise, and the least b whose epsilon at delta is at most epsilon.
func newVectorSum(inputs, dim, epsilon, delta float64) (vectorSum, error) {
	s := vectorSum{inputs: inputs, dim: dim, levels: max(math.Ceil(2*math.Sqrt(inputs)), math.Ceil(math.Sqrt(dim)), 4),
		p: 0.25}
	if !(epsilon > 0 && epsilon <= 15) || !(delta > 0 && delta < 0.5) {
		return s, fmt.Errorf("epsilon %v, delta %v: Lemma G.1 wants (0, 15] and (0, 1/2)", epsilon, delta)
	}
	const most = 1 << 52
	lo, hi := 0.0, 1.0
	for s.trials = hi; !(s.epsilon(delta) <= epsilon); s.trials = hi {
		if lo, hi = hi, 2*hi; hi > most {
			return s, fmt.Errorf("epsilon %v, delta %v: more than 2^52 trials a coordinate", epsilon, delta)
		}
	}
	for hi-lo > 1 {
		mid := math.Floor((lo + hi) / 2)
		if s.trials = mid; s.epsilon(delta) <= epsilon {
			hi = mid
		} else {
			lo = mid
		}
	}
	s.trials = hi
	return s, nil
}

// spread returns v = m b p (1-p), the noise's variance in counts.
func (s vectorSum) spread() float64 { return s.inputs * s.trials * s.p * (1 - s.p) }

// epsilon returns the epsilon of the d-dimensional binomial mechanism in closed form (Agarwal et al. 2018,
// Theorem 1), with shifts of at most g in every coordinate, g + sqrt(d) in the second norm and sqrt(d) g + d
// in the first; +Inf where it does not apply.
func (s vectorSum) epsilon(delta float64) float64 {
	d, g, p, v := s.dim, s.levels, s.p, s.spread()
	if v < max(23*math.Log(10*d/delta), 2*g) {
		return math.Inf(1)
	}
	both := p*p + (1-p)*(1-p)
	c1 := 2./3*both + 1 - 2*p
	c2 := math.Sqrt2 * (3*p*p*p + 3*(1-p)*(1-p)*(1-p) + 2*both)
	c3 := 4. / 3 * both
	second, first := math.Min(g+math.Sqrt(d), math.Sqrt(d)*g), math.Min(math.Sqrt(d)*g+d, d*g)
	return second*math.Sqrt(2*math.Log(1.25/delta)/v) +
		(second*c2*math.Sqrt(math.Log(10/delta))+first*c1)/(v*(1-delta/10)) +
		g*(2./3*math.Log(1.25/delta)+c3*math.Log(20*d/delta)*math.Log(10/delta))/v
}

// meanSquare bounds the mean squared error of the sum of vectors of norm at most 1: d (2/g)^2 (v + m/4), rounding
// included.
func (s vectorSum) meanSquare() float64 {
	return s.dim * 4 / (s.levels * s.levels) * (s.spread() + s.inputs/4)
}

// summed is Theorem 5.2 for a federation: accelerated steps in one pass, with reports summed by P_vec.
type summed struct{ Federation }

// batch returns K of Theorem 5.2 (G.2), in which reports are summed by P_vec, within [1, n] and not
// rounded; R = floor(n/K).
//
//	convex          (L/(beta D))^(2/5) n^(3/5) (d ln(d/delta)^2)^(1/5) / (epsilon^(2/5) M^(2/5))
//	strongly convex n / (sqrt(kappa) ln(mu Delta min{epsilon^2 n^2 M^2/(L^2 d ln(1/delta)), n M/phi^2}))
//
// Doubt: printed is d ln(1/delta_0) with epsilon_0; these balance the two summands of the proof. nM there
// lacks 1/phi^2, by dimension.
func (f summed) batch() float64 {
	if f.Convexity > 0 {
		return f.strongBatch(f.signal() * f.Available / (f.Lipschitz * f.Lipschitz * f.Dim * f.logDelta()))
	}
	log := math.Log(f.Dim / f.Delta)
	return f.withinRecords(math.Pow(f.Lipschitz/(f.Smoothness*f.Diameter), 0.4) *
		math.Pow(f.Records, 0.6) * math.Pow(f.Dim*log*log, 0.2) / math.Pow(f.Epsilon*f.Available, 0.4))
}

// noise returns the standard deviation of a coordinate of one round's mean, summed by P_vec over M K
// vectors, with our sizing.
func (f summed) noise(batch float64) (float64, error) {
	m := f.Available * batch
	s, err := newVectorSum(m, f.Dim, f.Epsilon, f.Delta)
	return f.Lipschitz * math.Sqrt(s.meanSquare()/f.Dim) / m, err
}

// conditions returns the premises of Theorem 5.2.
func (f summed) conditions(batch float64) []condition {
	return []condition{
		atMost("epsilon <= 15", f.Epsilon, 15),
		atMost("delta < 1/2", f.Delta, math.Nextafter(0.5, 0)),
		atMost("K <= n", batch, f.Records),
	}
}

// variance returns V^2 of Theorem 5.2: as variance, with what P_vec adds to the mean.
func (f summed) variance(batch, noise float64) float64 {
	return f.sampling(batch) + f.Dim*noise*noise
}
