package method

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// Bank follows the optimum of a stream that never ends.
//
// A gradient g at theta, with the curvature e of the loss, is an observation of the optimum's position: z = theta -
// g/e. Each filter of a bank models the optimum as a random walk of its own speed, observed with noise of its own size.
// All filters see the same z, whose likelihood under each filter determines the filter's weight (interacting multiple
// models, Blom and Bar-Shalom 1988). Intercepts have a bank of their own, because their optimum jumps with the shares
// of the classes. docs/proofs/adaptive.md has the formulas, what is proved about them, and how their constants were
// chosen.
//
// Cohorts double while the model hardly moves and shrink when it moves much, so that its memory covers about eight
// rounds.
type Bank struct {
	base
	cfg BankConfig

	intercepts, weights filters

	curvature float64 // h, of the loss along the last steps; at least the first look's estimate
	num, den  float64 // N and S: sums over secants, with exponential forgetting
	last      secant
	residual  float64 // mean square of the residual of numbers, 1 at first
	cohort    uint64  // users of the next round
	users     float64 // of the rounds so far, and of the first look
	calm      bool    // nothing surprised so far
	surprise  float64 // of the last rounds
	since     [2]past // of intercepts and weights, before the last round
	gain      float64 // share of the way to z that the last step took
	memory    float64 // users whose events the model remembers, about
}

// A secant holds the part of a step that the next step needs to estimate the curvature along both.
type secant struct {
	point, gradient []float64
	variance        float64 // of one coordinate of the gradient
	noise           float64 // the part of it from noise, not from rows
	kappa           float64 // step per unit of gradient
}

// BankConfig configures Bank.
type BankConfig struct {
	Dim    int        // length of theta
	Blocks int        // of theta, one for each score, each with its intercept last
	Lone   bool       // whether scores lack an intercept
	Set    convex.Set // constraint set of announced points and models
	Start  []float64  // in Set
	Stream practical.Stream
	Layout practical.Layout // users of the first look, smallest and largest cohorts
	Users  uint64           // H, the horizon: until then cohorts grow faster
	// Known is the variance of one coordinate of the optimum around Start if Start is a model, +Inf if unknown; 0 if Start
	// follows from a look at labels.
	Known float64
}

const (
	forgetting     = 0.95 // power of the old weights
	mixing         = 0.02 // share of the weights that is spread over all filters after each round
	secantMemory   = 0.9
	secantPrior    = 0.3 // standard deviation of the curvature before there are secants
	secantMost     = 3   // secants never count for more than this many times the prior
	listening      = 0.5 // weight of the intercepts' gain in the choice of cohorts
	interceptShare = 0.5 // of the spread of the weights
	knownShare     = 0.1 // of the variance, if the start is a model of an unknown number of users
	farthest       = 1e3 // largest distance of a filter from zero, in spreads
	leastResidual  = 0.02
	mostResidual   = 2

	growEarly, growLater = 0.3, 0.1 // gains below which cohorts double, before and after the first alarm or the horizon
	shrinkAbove          = 0.25
	wantedGain           = 0.125 // eight rounds in the memory
	shrinkMost           = 0.125

	calmBelow = 4 // surprise

	worseBy  = 2   // deviations by which a round's mean loss exceeds the loss of zeros
	backward = 0.5 // share of their points that filters keep then

	// Alarm is the surprise above which the stream has changed.
	Alarm = 4
)

var (
	memories        = []float64{1e3, 5e3, 2.5e4, 1.25e5, 1e9} // L, in users
	noises          = []float64{1, 9, 81}                     // c: factor by which a round's variance may exceed its noise
	weightScales    = []float64{0.25, 1}                      // of the spread
	interceptScales = []float64{1}
)

// NewBank returns the method at its start. The error names the field that does not fit.
func NewBank(c BankConfig) (*Bank, error) {
	s := c.Stream
	for _, x := range []float64{s.Curvature, s.Slope, s.Spread, s.Clip} {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("bank: %+v: want numbers above 0", s)
		}
	}
	if c.Blocks < 1 || c.Dim%c.Blocks != 0 {
		return nil, fmt.Errorf("bank: %d blocks of %d numbers", c.Blocks, c.Dim)
	}
	if c.Layout.Base < 1 || c.Layout.Top < c.Layout.Base || c.Users < 1 {
		return nil, fmt.Errorf("bank: cohorts of %d to %d, %d users: want cohorts in this order, of at least 1",
			c.Layout.Base, c.Layout.Top, c.Users)
	}
	numbers := []float64{s.Curvature, s.Slope, s.Spread, s.Trust, s.Clip, s.Residual, float64(c.Layout.Base),
		float64(c.Layout.Top), float64(c.Users)}
	if s.Zero > 0 { // streams that began before Zero existed go on without it
		numbers = append(numbers, s.Zero)
	}
	b, err := newBase(methodBank, settings{dim: c.Dim, set: c.Set, start: c.Start, endless: true}, numbers...)
	if err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	out := &Bank{base: b, cfg: c, users: float64(c.Layout.MomentUsers), calm: true}
	if !(c.Known >= 0) {
		return nil, fmt.Errorf("bank: variance %v around the start, want at least 0", c.Known)
	}
	out.begin(out.start, c.Known)
	return out, nil
}

// begin puts all filters at a point, as before the first round. known is the variance of one coordinate of the optimum
// around it, as in BankConfig.
func (b *Bank) begin(at []float64, known float64) {
	s := b.cfg.Stream
	around := func(v float64) float64 {
		switch {
		case known == 0:
			return v
		case math.IsInf(known, 1):
			return knownShare * v
		}
		return min(known, v)
	}
	one, rest := b.split(at)
	spread := interceptShare * s.Spread
	b.intercepts = newFilters(one, spread*spread/float64(b.cfg.Blocks), interceptScales, around)
	b.weights = newFilters(rest, s.Spread*s.Spread/float64(max(len(rest), 1)), weightScales, around)
	b.curvature, b.num, b.den, b.last, b.residual = s.Curvature, 0, 0, secant{}, 1
	b.cohort, b.surprise, b.gain, b.memory, b.since = b.cfg.Layout.Base, 0, 1, 0, [2]past{}
}

// split takes the intercepts, the last numbers of the blocks, and the weights out of a vector.
func (b *Bank) split(theta []float64) (intercepts, weights []float64) {
	if b.cfg.Lone {
		return nil, append(weights, theta...)
	}
	n := len(theta) / b.cfg.Blocks
	for k := range b.cfg.Blocks {
		weights = append(weights, theta[k*n:(k+1)*n-1]...)
		intercepts = append(intercepts, theta[(k+1)*n-1])
	}
	return intercepts, weights
}

// join is the inverse of split.
func (b *Bank) join(intercepts, weights []float64) []float64 {
	if b.cfg.Lone {
		return weights
	}
	out := make([]float64, 0, len(intercepts)+len(weights))
	n := len(weights) / b.cfg.Blocks
	for k, x := range intercepts {
		out = append(append(out, weights[k*n:(k+1)*n]...), x)
	}
	return out
}

// point returns the mean of the filters, in the set.
func (b *Bank) point() []float64 {
	out := b.join(b.intercepts.mean(), b.weights.mean())
	b.set.Project(out, out)
	return out
}

// Query returns the query for the gradient at the mean of the filters.
func (b *Bank) Query() Query {
	q := b.query(b.point())
	q.Cohort = b.cohort
	return q
}

// Model returns the point of Query.
func (b *Bank) Model() []float64 { return b.point() }

// Step learns from the gradient of a round; e.Loss, where it is present, measures the residuals.
func (b *Bank) Step(e Estimate) error {
	if err := b.validate(e); err != nil {
		return err
	}
	s, m := b.cfg.Stream, float64(e.Users*max(1, b.cfg.Layout.Units))
	noise := e.PrivacyVariance + e.RoundingVariance
	variance := noise + s.Slope*b.residual/m
	theta, g := b.point(), e.Gradient
	num, den, h := b.num, b.den, s.Curvature
	if b.last.point != nil {
		num, den, h = b.along(theta, g, variance)
	}
	oneOf, restOf := b.split(g)
	one, rest := b.split(theta)
	trust := s.Trust / b.residual
	curvatures := [2]float64{trusted(s.Curvature, trust, oneOf, variance), trusted(h, trust, restOf, variance)}
	keep := b.keeps(e)
	a, aWants := b.intercepts.step(seen{one, oneOf, curvatures[0], variance, m, keep})
	w, wWants := b.weights.step(seen{rest, restOf, curvatures[1], variance, m, keep})
	far := farthest * s.Spread
	a.near(far)
	w.near(far)
	if !a.finite() || !w.finite() || math.IsNaN(h) || math.IsInf(num+den, 0) {
		return errOverflow()
	}
	pooled := (aWants.seen + wWants.seen) / ((aWants.expected + wWants.expected) / float64(len(theta)))
	quiet := max((pooled-float64(len(theta)))/math.Sqrt(2*float64(len(theta))), aWants.surprise(a.dim),
		wWants.surprise(w.dim)) < calmBelow
	b.intercepts, b.weights = a, w
	b.surprised(theta, g, curvatures, [2]deviation{aWants, wWants}, variance, noise)
	b.gain = max(w.gain, listening*a.gain)
	b.num, b.den, b.curvature = num, den, h
	b.last = secant{point: theta, gradient: append([]float64(nil), g...), variance: variance, noise: noise,
		kappa: b.gain / curvatures[1]}
	if s.Squared && e.Loss != nil {
		b.residual = min(max(0.9*b.residual+0.1*s.Residual**e.Loss, leastResidual), mostResidual)
	}
	b.calm = b.calm && quiet
	b.memory = m * (2 - b.gain) / b.gain
	b.users += m
	b.taken++
	b.resize(e.Users)
	return nil
}

// keeps returns the share of their points that filters keep before a step. It is less than 1 if the model's loss, by
// the users of the round, exceeds the loss of a model of zeros, which is known without labels, by more than noise and
// sampling explain. After an abrupt change zero is nearer to the new optimum than the old model is, and a model that
// dishonest users drove away returns.
func (b *Bank) keeps(e Estimate) float64 {
	zero := b.cfg.Stream.Zero
	if zero == 0 || e.Loss == nil {
		return 1
	}
	deviation := math.Sqrt(e.LossNoise*e.LossNoise + zero*zero/float64(e.Users*max(1, b.cfg.Layout.Units)))
	if *e.Loss > zero+worseBy*deviation {
		return backward
	}
	return 1
}

// along updates the curvature by the secant of the last step, less the contribution of the noise that the last
// gradient and the step share.
func (b *Bank) along(theta, g []float64, variance float64) (num, den, h float64) {
	var rise, square float64
	for i, x := range theta {
		d := x - b.last.point[i]
		rise += float64(d * (g[i] - b.last.gradient[i]))
		square += float64(d * d)
	}
	v := variance + b.last.variance
	num = secantMemory*b.num + (rise-b.last.kappa*float64(len(theta))*b.last.variance)/v
	den = secantMemory*b.den + square/v
	const prior = 1 / (secantPrior * secantPrior)
	if most := secantMost * prior; den > most {
		num, den = num*most/den, most
	}
	return num, den, max(b.cfg.Stream.Curvature, (num+b.cfg.Stream.Curvature*prior)/(den+prior))
}

// trusted returns the curvature that determines a step: more than h if the gradient is longer than its noise.
func trusted(h, trust float64, g []float64, variance float64) float64 {
	square := 0.0
	for _, x := range g {
		square += float64(x * x)
	}
	return h + trust*max(0, square-float64(len(g))*variance)
}

// resize plans the next cohort after a round of so many users.
func (b *Bank) resize(users uint64) {
	grow := growLater
	if b.calm && b.users < float64(b.cfg.Users) {
		grow = growEarly
	}
	m, base := float64(b.cohort), float64(b.cfg.Layout.Base)
	switch {
	case b.gain < grow:
		if users >= b.cohort {
			m *= 2
		}
	case b.gain > shrinkAbove:
		m *= max(shrinkMost, wantedGain/b.gain)
	}
	if users < b.cohort { // the round closed with too few users
		m = min(m, 2*float64(users))
	}
	b.cohort = uint64(max(base, min(m, float64(b.cfg.Layout.Top), b.users/4)))
}

// announce sets the cohort of the next round, within the layout's bounds, when the caller chooses it instead of the
// bank. Later cohorts grow and shrink from there.
func (b *Bank) announce(cohort uint64) {
	b.cohort = min(max(cohort, b.cfg.Layout.Base), b.cfg.Layout.Top)
}

// A Tracking describes how a bank follows its stream.
type Tracking struct {
	// Surprise is the number of deviations by which the last round was farther from the model than expected.
	Surprise float64 `json:"surprise"`
	Alarm    bool    `json:"alarm"`        // Surprise is above method.Alarm: the stream has changed
	Memory   float64 `json:"memory_users"` // users whose events the model remembers, about
	// Error is the approximate expected excess of the loss over the optimum's, in nats or squares of a deviation.
	Error float64 `json:"expected_error"`
	// Cohort is the number of users of the next round: as chosen by the method, or in a task as announced; 0 if no round
	// follows.
	Cohort uint64 `json:"cohort"`
	// DeadlineMs is the time after the announcement, in milliseconds, at which the next round closes with fewer users; 0
	// if there is none, or outside a task.
	DeadlineMs uint64 `json:"deadline_ms,omitempty"`
}

// Tracking returns how the bank follows the stream; nil before the first round of gradients.
func (b *Bank) Tracking() *Tracking {
	if b.taken == 0 {
		return nil
	}
	unsure := b.intercepts.unsure() + b.weights.unsure()
	return &Tracking{Surprise: b.surprise, Alarm: b.surprise > Alarm, Memory: min(b.memory, b.users),
		Error: b.cfg.Stream.Curvature * unsure / 2, Cohort: b.cohort}
}
