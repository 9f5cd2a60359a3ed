package private

import (
	"math"

	"github.com/panlearn/panlearn/learner/research/resque"
)

// maxOrder is the largest p of the moments 2p with which drift is bounded.
const maxOrder = 250

// moments holds the moments that drift needs of a ratio s = r/rho, a batch B and a kind of losses: logarithms
// of the k-th coefficient of t^k, from k = 2.
type moments struct {
	s      float64
	convex bool
	coeff  []float64
	choose []float64 // log k!
}

// newMoments computes them: mu_k(s) E N^k / B^k with N Poisson(B) records in a step, or mu_k(s) where batch is 0
// and a step is about one record.
func newMoments(s, batch float64, convexLosses bool) *moments {
	m := &moments{s: s, convex: convexLosses, coeff: make([]float64, 2*maxOrder+1), choose: make([]float64, 2*maxOrder+1)}
	for k := 2; k < len(m.choose); k++ {
		m.choose[k] = m.choose[k-1] + math.Log(float64(k))
	}
	size := make([]float64, len(m.coeff)) // log E N^k
	if batch > 0 {
		// Touchard: E N^(k+1) = B sum_j C(k,j) E N^j.
		for k := range len(size) - 1 {
			most := math.Inf(-1)
			var sum float64
			for j := range k + 1 {
				most = max(most, m.binomial(k, j)+size[j])
			}
			for j := range k + 1 {
				sum += math.Exp(m.binomial(k, j) + size[j] - most)
			}
			size[k+1] = math.Log(batch) + most + math.Log(sum)
		}
	}
	for k := 2; k < len(m.coeff); k++ {
		m.coeff[k] = resque.LogMoment(k, s) + size[k]
		if batch > 0 {
			m.coeff[k] -= float64(k) * math.Log(batch)
		}
	}
	return m
}

func (m *moments) binomial(n, k int) float64 { return m.choose[n] - m.choose[k] - m.choose[n-k] }

// logGrowth returns log g(p): the factor by which a step of t = e L/rho about records that two runs share
// lets E ||y - y'||^(2p) grow, at most.
func (m *moments) logGrowth(p int, t float64) float64 {
	logT := math.Log(t)
	sum := 0.0
	for k := 2; k <= 2*p; k++ {
		v := m.binomial(2*p, k) + float64(k)*logT + m.coeff[k]
		if v > 30 {
			return math.Inf(1) // no use
		}
		if v < -50 {
			sum += 2e-22 // at least as much
			continue
		}
		sum += math.Exp(v)
	}
	if !m.convex {
		sum += 2 * float64(p) * t * math.Sqrt(2/math.Pi)
	}
	return math.Log1p(sum)
}

// multiplier returns KD (docs/proofs/resque.md, Lemma D): with probability at least 1 - delta the means of
// the points of two runs that differ in one record, in one of these steps, are at most KD e L/B apart. h is 1
// where the record is absent in one of them, 2 where it is another one. The second result is the p that shows
// it.
func (m *moments) multiplier(h, t float64, steps int, delta float64) (kd float64, p int) {
	best := math.Inf(1)
	for q := 1; q <= maxOrder; q += 1 + q/70*3 {
		two := 2 * float64(q)
		v := (two-1)*m.s*m.s/2 + float64(steps)/two*m.logGrowth(q, t) - math.Log(delta)/two
		if v < best {
			best, p = v, q
		}
	}
	return h * math.Exp(best) * (1 + 1e-6), p
}
