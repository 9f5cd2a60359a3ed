package private

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A sgd holds the numbers of projected noisy stochastic gradient descent: Steps steps, each about a Poisson
// sample of the records, from the origin; the mean of the points at which gradients were taken is the result.
type sgd struct {
	steps  int
	rate   randomizer.Coin
	mu     float64 // of one record's gradient, in standard deviations
	radius uint64  // of one record's ball, in steps
	entry  entry
	eta    float64
	bound  float64
}

// batch returns B, the expected number of records a step.
func (s sgd) batch(n int) float64 { return s.rate.Float() * float64(n) }

// noiseOf returns the standard deviation of a coordinate of the sum of gradients, at most, in units of L.
func noiseOf(radius uint64) float64 {
	return math.Sqrt(noiseVariance) * (1 << stepBits) / float64(radius)
}

// sgdBound returns the bound of docs/proofs/resque.md, Theorem N, and the step eta: with M^2 the second
// moment of a step's gradient over L^2,
//
//	E f(x) - f(x*) <= R L M / sqrt(T) + 2 R b,    M^2 = 1 + (1-q)/B + d z^2/B^2
//
// where b is the distance by which rounding toward zero moves a gradient. eta is R / (L M sqrt(T)).
func sgdBound(p Public, steps int, rate randomizer.Coin, noise float64) (bound, eta float64) {
	b := rate.Float() * float64(p.N)
	m := math.Sqrt(1 + (1-rate.Float())/b + float64(p.Dim)*noise*noise/(b*b))
	rounding := p.Lipschitz * math.Sqrt(float64(p.Dim)) * noise / math.Sqrt(noiseVariance) / (1 << stepBits)
	eta = p.Radius / (p.Lipschitz * m * math.Sqrt(float64(steps)))
	return p.Radius*p.Lipschitz*m/math.Sqrt(float64(steps)) + 2*p.Radius*rounding, eta
}

// slackShare is the share of delta that goes to the lattice's slack.
const slackShare = 0.005

// releaseSlack returns the slack allotted to one of this many releases.
func releaseSlack(b accounting.Budget, releases float64) float64 {
	return slackShare * b.Delta / (1 + math.Exp(b.Epsilon)) / releases
}

// largestMu returns the largest mu, to a thousandth, with which so many sampled releases leave room for the
// masses.
func largestMu(b accounting.Budget, releases, q float64) float64 {
	lo, hi := math.Log(1e-6), math.Log(50.0)
	for hi-lo > 5e-4 {
		mid := (lo + hi) / 2
		if accounting.NewRenyi().Plus(releases, accounting.SampledGaussian(q, math.Exp(mid))).Delta(b.Epsilon) <= b.Delta*(1-slackShare) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(lo)
}

// planSGD searches batch and steps for the smallest bound.
func planSGD(p Public) (sgd, error) {
	budget, most := p.target(), p.passes()*float64(p.N)
	score := func(x []float64) float64 {
		batch, steps := math.Exp(x[0]), math.Floor(math.Exp(x[1])+1e-9)
		rate := gridRate(batch / float64(p.N))
		if rate == 0 || steps < 1 || steps > p.maxRounds() || batch > float64(p.N) || steps*batch > most*(1+1e-9) {
			return math.Inf(1)
		}
		bound, _ := sgdBound(p, int(steps), rate, 1.005/largestMu(budget, steps, rate.Float()))
		return bound
	}
	start := min(8, float64(p.N)/2)
	steps0 := min(most/start, p.maxRounds())
	x := minimize([]float64{math.Log(start), math.Log(steps0)}, [][]float64{{1, -1}, {0, 1}, {1, 0}}, score)
	s := sgd{steps: int(math.Exp(x[1]) + 1e-9), rate: gridRate(math.Exp(x[0]) / float64(p.N))}
	s.mu = largestMu(budget, float64(s.steps), s.rate.Float())
	shift, slack, err := accounting.GaussianShift(noiseTrials, p.Dim, s.mu, releaseSlack(budget, float64(s.steps)))
	if err != nil {
		return sgd{}, err
	}
	s.radius = uint64(shift * (1 << stepBits))
	s.entry = entry{curve: accounting.SampledGaussian(s.rate.Float(), s.mu), slack: slack}
	s.bound, s.eta = sgdBound(p, s.steps, s.rate, noiseOf(s.radius))
	return s, nil
}

// ledger returns the ledger after all steps.
func (s sgd) ledger(p Public) ledger {
	return newLedger(p.target()).with(float64(s.steps), s.entry)
}

// run learns by the method.
func (s sgd) run(ctx context.Context, p Public, r *records, entropy rand.Source) ([]float64, ledger, error) {
	book := newLedger(p.target())
	noise, err := newLattice(nil, entropy)
	if err != nil {
		return nil, book, err
	}
	sample, err := newSampler(p.N, s.rate, entropy)
	if err != nil {
		return nil, book, err
	}
	d := p.Dim
	x, mean, g, place := make([]float64, d), make([]float64, d), make([]float64, d), make([]int64, d)
	level := p.Lipschitz * (1 << stepBits) / float64(s.radius)
	for range s.steps {
		if err := ctx.Err(); err != nil {
			return nil, book, err
		}
		if err := book.charge(s.entry); err != nil {
			return nil, book, err
		}
		for j, v := range x {
			mean[j] += v / float64(s.steps)
		}
		for _, i := range sample.draw() {
			r.gradient(g, x, i)
			add(place, g, p.Lipschitz, s.radius)
		}
		noise.release(g, place, level)
		for j := range x {
			x[j] -= s.eta / s.batch(p.N) * g[j]
		}
		convex.Clip(x, p.Radius)
	}
	convex.Clip(mean, p.Radius)
	return mean, book, nil
}
