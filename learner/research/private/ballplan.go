package private

import (
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/research/resque"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A ballShape is a plan without its noise.
type ballShape struct {
	gap    float64 // of the outer loop, L rho sqrt(d) too
	ratio  float64 // s = r/rho
	log    [3]int  // T of a probe, a step and a proximal estimate's level 0, as logarithms to base 2
	levels int     // of a proximal estimate
	probes int     // of a step
	copies int     // of a probe
}

// ballSearch is the search for a plan.
type ballSearch struct {
	p Public
}

// shape makes the calls, with what is common to them: Algorithm 5 of T steps has beta in proportion to
// 1/sqrt(T), as the levels of Algorithm 6 have and stages have among each other, so that calls of the same
// number of steps are the same. mu is the parameter of a call of one step.
func (s ballSearch) shape(of ballShape, mu float64) (ball, bool) {
	p, n := s.p, float64(s.p.N)
	rho := of.gap / p.Lipschitz / math.Sqrt(float64(p.Dim))
	b := ball{rho: rho, copies: of.copies, outer: resque.Outer{Lipschitz: p.Lipschitz, Radius: p.Radius,
		Ball: of.ratio * rho, Gap: of.gap, Probes: of.probes}}
	if b.outer.Ball > p.Radius || of.levels < 1 {
		return b, false
	}
	least, _ := b.outer.Strengths()
	last, steps := 0., 0
	for ; last < 2*p.Radius*p.Radius/of.gap; steps++ {
		last += resque.NextStep(least, last)
		if float64(steps*(of.probes+1)) > min(p.maxRounds(), 1<<16) {
			return b, false
		}
	}
	b.outer.Steps = steps
	b.caps = levelCaps(steps, of.levels)
	times := append([]int{steps * of.probes * of.copies, steps}, levelTimes(steps, b.caps)...)
	for i, t := range times {
		T := math.Ldexp(1, of.log[min(i, ofLevel)]+max(0, i-ofLevel))
		if T > n/4 {
			return b, false
		}
		var calls strong
		steps, mus := restarts(T, mu/math.Sqrt(T))
		for j := range steps {
			slots := powerOfTwo(steps[j]) - 1
			c := stage{slotted: slotted{slots: slots, rate: gridRate(float64(slots) / n), mu: mus[j]}}
			if c.rate == 0 {
				return b, false
			}
			calls = append(calls, c)
		}
		b.kinds = append(b.kinds, kind{calls, t})
	}
	return b, true
}

// enter gives every different stage what f makes of it.
func (b ball) enter(f func(*stage) error) error {
	made := map[int]stage{}
	for _, k := range b.kinds {
		for i := range k.strong {
			s := &k.strong[i]
			if of, ok := made[s.slots]; ok {
				*s = of
				continue
			}
			if err := f(s); err != nil {
				return err
			}
			made[s.slots] = *s
		}
	}
	return nil
}

// stages bounds the number of calls of Algorithm 4.
func (b ball) stages() (calls float64) {
	for _, k := range b.kinds {
		calls += float64(k.times * len(k.strong))
	}
	return calls
}

// charge finds the largest mu that the ledger has room for.
func (s ballSearch) charge(of ballShape) (ball, bool) {
	budget := s.p.target()
	lo, hi := math.Log(1e-4), math.Log(200.)
	for hi-lo > 1e-2 {
		mid := (lo + hi) / 2
		b, ok := s.shape(of, math.Exp(mid))
		if !ok {
			return b, false
		}
		_ = b.enter(func(s *stage) error {
			s.call.curve = accounting.SampledGaussian(s.rate.Float(), s.mu)
			return nil
		})
		if b.ledger(s.p).curve.Delta(budget.Epsilon) <= budget.Delta*(1-slackShare-driftShare) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return s.shape(of, math.Exp(lo))
}

// tune sets a stage's steps, its gap (Lemma V; a strength of up to 2L/r makes the objective 3L-Lipschitz in
// the ball) and, where delta is above 0, KD, which depend on each other a little, for noise of sd standard
// deviations at one of KD e L/B. It reports whether the steps are short enough for the lemma.
func (s ballSearch) tune(c *stage, m *moments, sd, delta float64) bool {
	T := float64(c.slots + 1)
	c.unit = 1 / math.Sqrt(T)
	if delta > 0 {
		c.kd = 1.5
	}
	for range 2 {
		variance := c.variance(s.p, m, c.longest(), 3, sd*c.kd)
		if math.IsInf(variance, 1) {
			return false
		}
		c.unit = 2 / math.Sqrt(T*variance)
		if delta > 0 {
			c.kd = c.drift(m, delta)
		}
	}
	c.factor = 4/(c.unit*T) + c.unit*c.variance(s.p, m, c.longest(), 3, sd*c.kd)
	return !math.IsInf(c.factor, 1)
}

// longest returns eta L/r of the longest steps that a strength can ask for: r_i is at most 2r.
func (c stage) longest() float64 { return 2 * c.unit }

// drift returns KD of the longest steps, and of the first phase, whose steps are the longest and the most. It
// grows with both (docs/proofs/resque.md), so no strength needs more.
func (c stage) drift(m *moments, delta float64) float64 {
	ph := phases(c.slots+1, c.longest())[0]
	kd, _ := m.multiplier(1, ph.e*m.s, ph.steps, delta)
	return kd
}

// settle replaces the Gaussian by the lattice, and charges the run.
func (s ballSearch) settle(b *ball) error {
	budget, calls := s.p.target(), b.stages()
	batch := math.Inf(1)
	_ = b.enter(func(c *stage) error { batch = min(batch, c.batch(s.p.N)); return nil })
	m := newMoments(b.outer.Ball/b.rho, batch, s.p.Convex) // of the smallest batch: they are the largest
	err := b.enter(func(c *stage) error {
		shift, used, err := accounting.GaussianShift(noiseTrials, s.p.Dim, c.mu, releaseSlack(budget, calls))
		if err != nil {
			return err
		}
		delta := driftShare * budget.Delta * math.Exp(-budget.Epsilon) / (calls * c.rate.Float())
		c.shift = shift
		c.call = entry{curve: accounting.SampledGaussian(c.rate.Float(), c.mu), slack: used, drift: c.rate.Float() * delta}
		if !s.tune(c, m, 1.02*math.Sqrt(noiseVariance+0.25)/shift, delta) { // 1.02: what place adds to KD
			return errTooLong
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.fits(s.p)
}

// weight is the factor by which a proxy scales the errors of calls. With 1 the proxy would weigh them as a
// bound does: plans would take few steps and smooth too much, since calls are far better than their bounds.
const weight = 0.1

// proxy returns the bound that the potential of BallAccel (docs/proofs/resque.md) would have if every step were of the
// least strength, no line search failed, and the calls' errors were a tenth of Lemma T's. Plans are compared by it; it
// is no bound.
func (b ball) proxy(p Public) float64 {
	lambda, _ := b.outer.Strengths()
	R := p.Radius
	gap := func(kind int) float64 {
		_, gaps := b.kinds[kind].distances(p.Lipschitz, lambda, b.outer.Ball)
		return gaps[len(gaps)-1]
	}
	var A, gaps, squares float64
	for range b.outer.Steps {
		a := resque.NextStep(lambda, A)
		A += a
		gaps += A
		squares += a * a
	}
	last := gap(ofLevel)
	variance := 4 * last * lambda
	for j := 1; j <= len(b.caps); j++ {
		next := gap(ofLevel + j)
		variance += math.Ldexp(8*lambda*(next+last), j)
		last = next
	}
	bias := math.Sqrt(2 * lambda * last)
	return p.Lipschitz*b.rho*math.Sqrt(float64(p.Dim)) + (R*R+weight*(gaps*gap(ofStep)+squares*(variance+3*bias*bias)/4+
		2*R*bias*A))/A
}

// Numbers that are not searched: probes of a step, where bisection that begins at the last strength mostly takes
// two, and copies of a probe.
const (
	ballProbes = 4
	ballCopies = 3
)

// ballRatios are the s = r/rho that are tried.
var ballRatios = []float64{0.05, 0.1}

// score returns the proxy at x = logarithms of the gap and of the three T, and the number of levels, with
// that KD for all and a guess of what the lattice adds.
func (s ballSearch) score(m *moments, kd float64, x []float64) (ballShape, float64) {
	of := ballShape{gap: math.Exp(x[0]) * s.p.Lipschitz * s.p.Radius, ratio: m.s, levels: int(math.Round(x[4] / math.Ln2)),
		probes: ballProbes, copies: ballCopies}
	for i := range of.log {
		if of.log[i] = int(math.Round(x[i+1] / math.Ln2)); of.log[i] < 3 || of.log[i] > 20 {
			return of, math.Inf(1)
		}
	}
	b, ok := s.charge(of)
	if _, queries := b.rounds(s.p.N); !ok || queries > s.p.passes()*float64(s.p.N) {
		return of, math.Inf(1)
	}
	if b.enter(func(c *stage) error {
		c.kd = kd
		if !s.tune(c, m, 1.005/c.mu, 0) {
			return errTooLong
		}
		return nil
	}) != nil || !(b.rounding(s.p) <= maxRounding) {
		return of, math.Inf(1)
	}
	return of, b.proxy(s.p)
}

var errTooLong = errors.New("resque-ball: steps are too long for the smoothing")

// planBall searches.
func planBall(p Public) (ball, error) {
	s := ballSearch{p}
	T := math.Ln2 * math.Floor(math.Log2(min(1024, float64(p.N)/32)))
	x := []float64{math.Log(0.2), T, T, T, 2 * math.Ln2}
	directions := [][]float64{{1, 0, 0, 0, 0}, {0, 1, 1, 1, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0},
		{0, 0, 0, 0, 1}, {0, 0, 0, -1, 1}}
	var best ballShape
	least := math.Inf(1)
	for _, ratio := range ballRatios {
		m := newMoments(ratio, 1, p.Convex)
		kd := stage{slotted: slotted{slots: 1023}, unit: 0.06}.drift(m, 1e-12) // about that of most
		y := minimize(x, directions, func(x []float64) float64 { _, v := s.score(m, kd, x); return v })
		if of, v := s.score(m, kd, y); v < least {
			best, least, x = of, v, y
		}
	}
	if math.IsInf(least, 1) {
		return ball{}, fmt.Errorf("resque-ball: no plan in %.0f gradients of %d records; want more records, passes or rounds",
			s.p.passes()*float64(p.N), p.N)
	}
	b, _ := s.charge(best)
	return b, s.settle(&b)
}
