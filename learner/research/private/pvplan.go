package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// ratios are the s = r/rho that are tried.
var ratios = []float64{0.02, 0.03, 0.05, 0.07, 0.1, 0.15}

// pvSearch is the search for the plan of ReSQue with the smallest bound under the ledger.
type pvSearch struct {
	p    Public
	most float64 // gradients in all
	// ridge is the ridge of the objective, in a ball of radius L/ridge; 0: none.
	ridge float64
	last  *int // that charge found: the next is often near
}

// muCells is the number of steps from the smallest mu to the largest.
const muCells = 1 << 13

// shape returns the plan at x = logarithms of r, rounds, slots, expected records in a gradient, and of the
// ratio of a gradient's mu to a call's; or false. Its noise is left to charge.
func (s pvSearch) shape(m *moments, x []float64) (pv, bool) {
	n := float64(s.p.N)
	v := pv{ridge: s.ridge, s: m.s, r: math.Exp(x[0]), rounds: int(math.Exp(x[1]) + 1e-9), most: cut(m.s)}
	k := int(math.Round(x[2] / math.Ln2))
	if k < 3 || k > 20 || v.rounds < 1 || float64(v.rounds) > min(s.p.maxRounds(), 1<<20) || v.r > s.p.Radius {
		return v, false
	}
	v.slots = 1<<k - 1
	v.rate, v.gradRate = gridRate(float64(v.slots)/n), gridRate(math.Exp(x[3])/n)
	if v.rate == 0 || v.gradRate == 0 || v.rate.Float() > 0.5 || v.gradRate.Float() > 0.99 {
		return v, false
	}
	return v, v.queries(s.p.N) <= s.most*(1+1e-9)
}

// charge gives the shape the largest mu that the ledger has room for, on a grid of 8192 from 1e-5 to 20, and the step
// length that goes with it.
func (s pvSearch) charge(v *pv, ratio float64) {
	budget := s.p.target()
	rounds, q, qg := float64(v.rounds), v.rate.Float(), v.gradRate.Float()
	lo, hi := math.Log(1e-5), math.Log(20.0)
	mu := func(i int) float64 { return math.Exp(lo + (hi-lo)*float64(i)/muCells) }
	*s.last = lastOf(muCells, *s.last, func(i int) bool {
		c := accounting.NewRenyi().Plus(rounds, accounting.SampledGaussian(q, mu(i))).Plus(rounds,
			accounting.SampledGaussian(qg, mu(i)*ratio))
		return c.Delta(budget.Epsilon) <= budget.Delta*(1-slackShare-driftShare)
	})
	v.mu = mu(*s.last)
	v.gradMu = v.mu * ratio
}

// tune sets eta and KD, which depend on each other a little, for a call's noise of sd standard deviations at one of
// KD e L/B.
func (s pvSearch) tune(v *pv, m *moments, sd float64) {
	L, T := s.p.Lipschitz, float64(v.slots+1)
	delta := driftDelta(s.p.target(), v.rounds, v.rate.Float())
	v.eta, v.kd = v.r/(L*math.Sqrt(T)), 1.5
	for range 2 {
		_, variance := v.callBound(s.p, m, sd*v.kd)
		if math.IsInf(variance, 1) {
			return
		}
		v.eta = 2 * v.r / (L * math.Sqrt(T*variance))
		v.kd = s.drift(v, m, delta)
	}
}

// drift returns KD of the first phase, whose steps are the longest and the most: it covers the others.
func (s pvSearch) drift(v *pv, m *moments, delta float64) float64 {
	ph := phases(v.slots+1, v.eta)[0]
	kd, _ := m.multiplier(1, ph.e*s.p.Lipschitz*m.s/v.r, ph.steps, delta)
	return kd
}

// score returns the bound at x, with a guess of what the lattice adds.
func (s pvSearch) score(m *moments, x []float64) float64 {
	v, ok := s.shape(m, x)
	if !ok {
		return math.Inf(1)
	}
	s.charge(&v, math.Exp(x[4]))
	s.tune(&v, m, 1.005/v.mu)
	of := phases(v.slots+1, v.eta)
	if !(rounding(of[len(of)-1], s.p.Dim, v.r, v.batch(s.p.N), s.p.Lipschitz) <= maxRounding) {
		return math.Inf(1)
	}
	return v.bound(s.p, m, 1.005*v.kd/v.mu, 1.005/v.gradMu)
}

// planPV searches. The bound is evaluated with the lattice's own noise, and the ledger with its own slack.
func planPV(p Public, baseline float64) (pv, float64, error) {
	s := pvSearch{p: p, last: new(int), most: p.passes() * float64(p.N)}
	unit := p.Lipschitz * p.Radius
	goal := min(max(4*baseline/unit, 1e-4), 0.5)
	best, at, bestBound := (*moments)(nil), []float64(nil), math.Inf(1)
	x := []float64{0, 0, math.Ln2 * math.Floor(math.Log2(min(4096, float64(p.N)/4))), math.Log(min(200, float64(p.N)/8)),
		1}
	x[0] = math.Log(0.03 * goal * p.Radius / math.Sqrt(float64(p.Dim)) * 0.3)
	x[1] = math.Log(min(2*math.Sqrt(p.Radius/(math.Exp(x[0])*goal)), s.most/(math.Exp(x[2])+math.Exp(x[3]))))
	x[1] = min(x[1], math.Log(s.p.maxRounds()))
	directions := [][]float64{{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {-1, 0.5, 0, 0, 0}, {0, -1, 1, 0, 0}, {0, 0, 1, 0, 0},
		{0, -1, 0, 1, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}, {-2, 1, -1, -1, 0}}
	for _, ratio := range ratios {
		m := newMoments(ratio, 1, p.Convex)
		y := minimize(x, directions, func(x []float64) float64 { return s.score(m, x) })
		if b := s.score(m, y); b < bestBound {
			best, at, bestBound = m, y, b
		}
		if !math.IsInf(s.score(m, y), 1) {
			x = y
		}
	}
	if best == nil {
		return pv{}, 0, fmt.Errorf("resque: no plan in %.0f gradients of %d records; want more records or passes", s.most,
			p.N)
	}
	v, _ := s.shape(best, at)
	s.charge(&v, math.Exp(at[4]))
	bound, err := s.settle(&v)
	return v, bound, err
}

// settle replaces the Gaussian by the lattice, and the batch of 1 by the one of the grid of rates, and
// evaluates the bound of the run.
func (s pvSearch) settle(v *pv) (float64, error) {
	m := newMoments(v.s, v.batch(s.p.N), s.p.Convex)
	budget := s.p.target()
	slack := releaseSlack(budget, 2*float64(v.rounds))
	shift, used, err := accounting.GaussianShift(noiseTrials, s.p.Dim, v.mu, slack)
	if err != nil {
		return 0, err
	}
	v.shift = shift
	v.call = entry{curve: accounting.SampledGaussian(v.rate.Float(), v.mu), slack: used}
	s.tune(v, m, math.Sqrt(noiseVariance)/shift)
	delta := driftDelta(budget, v.rounds, v.rate.Float())
	v.call.drift = v.rate.Float() * delta
	of, err := v.place(s.p)
	if err != nil {
		return 0, fmt.Errorf("resque: %w", err)
	}
	shift, used, err = accounting.GaussianShift(noiseTrials, s.p.Dim, v.gradMu, slack)
	if err != nil {
		return 0, err
	}
	v.radius = uint64(shift * (1 << stepBits))
	v.gradient = entry{curve: accounting.SampledGaussian(v.gradRate.Float(), v.gradMu), slack: used}
	var noise float64 // the largest of the phases, over e L/B
	for _, ph := range of {
		noise = max(noise, math.Sqrt(noiseVariance+0.25)*ph.level*v.batch(s.p.N)/(ph.e*s.p.Lipschitz))
	}
	return v.bound(s.p, m, noise, noiseOf(v.radius)), nil
}
