package private

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A pv is private ReSQue at a fixed lambda = L/r: in each round, around a point y that was released before,
// Algorithm 4 with one slot a record finds x, and a Poisson sample the smoothed gradient at x. Both are released
// with noise; all else is post-processing.
type pv struct {
	rounds int
	s, r   float64
	ridge  float64 // of (ridge/2) ||. - start||^2 in what is minimised, data-free; 0: none, and the start is the origin
	slotted
	eta float64

	gradRate randomizer.Coin
	gradMu   float64
	radius   uint64 // of one record's weighted gradient, in steps
	most     float64
	gradient entry

	coins *randomizer.Binomial       // see newLattice
	seen  func(call, grad []float64) // what a run releases, for audits
}

// cut returns the largest weight that a gradient is given: the expected excess over it is clipBias.
func cut(s float64) float64 { return math.Exp(4.5 * s) }

// clipBias returns E (W - most)_+ for a weight of log W ~ N(-s^2/2, s^2).
func clipBias(s, most float64) float64 {
	at := (s*s/2 - math.Log(most)) / s
	cdf := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	return cdf(at) - most*cdf(at-s)
}

// ledger returns the ledger after all rounds: a call and a gradient each.
func (v pv) ledger(p Public) ledger {
	return newLedger(p.target()).with(float64(v.rounds), v.call).with(float64(v.rounds), v.gradient)
}

// queries returns the expected number of gradients in all rounds, of n records.
func (v pv) queries(n int) float64 {
	return float64(v.rounds) * float64(n) * (v.rate.Float() + v.gradRate.Float())
}

// place calls slotted's place for the longest step that there is.
func (v pv) place(p Public) ([]phase, error) { return v.slotted.place(p, v.r, v.eta) }

// callBound returns the bound of Lemma V for the plan's call, whose objective has a slope of up to 2L in its
// ball, with a ridge 4L.
func (v pv) callBound(p Public, m *moments, noise float64) (gap, variance float64) {
	slope := 2.
	if v.ridge > 0 {
		slope = 4
	}
	variance = v.slotted.variance(p, m, p.Lipschitz*v.eta/v.r, slope, noise)
	step := v.eta * p.Lipschitz / v.r // eta L/r
	return 4/(step*float64(v.slots+1)) + step*variance, variance
}

// strength returns the strength of a call's regularised problem: its minimiser over the whole space lies in
// the ball. With a ridge the problem's slope is up to 2L in B(start, L/ridge).
func (v pv) strength(lipschitz float64) float64 {
	if v.ridge > 0 {
		return 2 * lipschitz / v.r
	}
	return lipschitz / v.r
}

// run learns by the method, from the origin.
func (v pv) run(ctx context.Context, p Public, r *records, entropy rand.Source) ([]float64, ledger, error) {
	return v.from(ctx, p, make([]float64, p.Dim), r, entropy)
}

// from learns from a start that was released before. p.Radius is the radius of the ball around the start that
// has the minimiser.
func (v pv) from(ctx context.Context, p Public, start []float64, r *records, entropy rand.Source) ([]float64, ledger,
	error) {
	book := newLedger(p.target())
	noise, err := newLattice(v.coins, entropy)
	if err != nil {
		return nil, book, err
	}
	call, err := newSampler(p.N, v.rate, entropy)
	if err != nil {
		return nil, book, err
	}
	sample, err := newSampler(p.N, v.gradRate, entropy)
	if err != nil {
		return nil, book, err
	}
	of, err := v.place(p)
	if err != nil {
		return nil, book, err
	}
	d, strength := p.Dim, v.strength(p.Lipschitz)
	lambda := strength - v.ridge
	inner := newSolver(d, v.r, v.r/v.s, strength, v.batch(p.N), of, noise)
	slots := newSlotter(call, v.slots)
	// x, w and y are displacements from the start, at and pull from y.
	x, w, y, at, pull, centre := make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d),
		make([]float64, d), make([]float64, d)
	g, place := make([]float64, d), make([]int64, d)
	expected := v.gradRate.Float() * float64(p.N)
	length := v.most * p.Lipschitz
	level := length * (1 << stepBits) / float64(v.radius)
	var total float64
	for range v.rounds {
		if err := ctx.Err(); err != nil {
			return nil, book, err
		}
		held := 1 + v.ridge*total
		a := resque.NextStep(lambda/held, total) // lambda a^2 = (A + a) (1 + ridge A)
		for j := range y {
			y[j] = (total*x[j] + a*w[j]) / (total + a)
			centre[j] = start[j] + y[j]
			pull[j] = -v.ridge / strength * y[j]
		}
		if err := book.charge(v.call); err != nil {
			return nil, book, err
		}
		clear(at)
		inner.solve(at, centre, pull, r, slots.draw())
		for j := range x {
			x[j] = y[j] + at[j]
		}
		if v.ridge > 0 {
			convex.Clip(x, p.Radius)
			for j := range at {
				at[j] = x[j] - y[j]
			}
		}
		if err := book.charge(v.gradient); err != nil {
			return nil, book, err
		}
		for _, i := range sample.draw() {
			inner.draw(centre)
			r.gradient(g, inner.query, i)
			weight := min(math.Exp(resque.LogWeight(at, inner.xi, inner.rho)), v.most)
			for j := range g {
				g[j] *= weight
			}
			add(place, g, length, v.radius)
		}
		noise.release(g, place, level)
		if v.seen != nil {
			v.seen(at, g)
		}
		for j := range w {
			w[j] = (held*w[j] - a/expected*g[j]) / (1 + v.ridge*(total+a))
		}
		convex.Clip(w, p.Radius)
		total += a
	}
	for j := range x {
		x[j] += start[j]
	}
	return x, book, nil
}

// weights returns A_N and the sum of A_1 to A_N of so many rounds.
func weights(lambda float64, rounds int) (last, sum float64) {
	for range rounds {
		last += resque.NextStep(lambda, last)
		sum += last
	}
	return last, sum
}

// bound returns the bound of docs/proofs/resque.md, Theorem V; with a ridge, the cost of a phase of
// localisation.
func (v pv) bound(p Public, m *moments, callNoise, gradNoise float64) float64 {
	if v.ridge > 0 {
		gap, smoothing := v.regularised(p, m, callNoise, gradNoise)
		return 8*gap + smoothing
	}
	gap, _ := v.callBound(p, m, callNoise)
	L, d := p.Lipschitz, float64(p.Dim)
	lambda := L / v.r
	last, sum := weights(lambda, v.rounds)
	sigma2, bias := v.estimate(p, gradNoise)
	return L*v.r/v.s*math.Sqrt(d) + (p.Radius*p.Radius/2+(1+v.s)*(1+v.s)*gap*L*v.r*sum+sigma2*sum/(2*lambda))/last + bias
}

// estimate returns the errors of the mean of a round's gradients: its variance, and the cost of its bias over
// a diameter of the ball.
func (v pv) estimate(p Public, noise float64) (variance, bias float64) {
	L, d, n := p.Lipschitz, float64(p.Dim), float64(p.N)*v.gradRate.Float()
	truncated := v.most * math.Sqrt(d) * noise / math.Sqrt(noiseVariance) / (1 << stepBits)
	return L * L * (math.Exp(v.s*v.s)/n + d*v.most*v.most*noise*noise/(n*n)), 2 * p.Radius * L * (clipBias(v.s, v.most) +
		truncated)
}

// driftShare is the share of delta that goes to runs that drift further than KD.
const driftShare = 0.02

// driftDelta returns the drift probability allotted to one call that samples the record.
func driftDelta(b accounting.Budget, rounds int, q float64) float64 {
	return driftShare * b.Delta * math.Exp(-b.Epsilon) / (float64(rounds) * q)
}
