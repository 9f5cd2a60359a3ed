package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Plan describes a run and its proved bounds. It is a pure function of Public.
type Plan struct {
	Public
	// Bound bounds the expected excess E f(x) - min f over B(R), where f is the mean of the N clipped losses; for
	// ReSQueSCO, of the population. It is +Inf for ReSQueBall, which has no bound.
	Bound float64 `json:"bound"`
	// Cost is an upper bound on the cost of the whole run.
	Cost cost `json:"cost"`
	// Rounds is the query depth: the number of times that queries wait for earlier answers.
	Rounds int `json:"rounds"`
	// Queries is the expected number of gradients of single records.
	Queries float64 `json:"queries"`
	// Rate is the probability with which a step, or a round, has a record in it, and Noise the standard deviation
	// of a coordinate of a step's, or a round's, sum of gradients in units of L; of ReSQueSCO in its first phase.
	Rate  float64 `json:"rate"`
	Noise float64 `json:"noise"`
	// Baseline is the bound of noisy SGD for the same target in at most 10 N gradients, or in Passes N if that is less.
	Baseline float64 `json:"baseline"`

	method method
}

// A method is a method with its planned numbers: sgd, pv, localized or ball.
type method interface {
	// ledger returns the largest charge of the whole run.
	ledger(p Public) ledger
	// run learns and returns the model. Its only errors are the ledger's, the context's, and internal ones.
	run(ctx context.Context, p Public, r *records, entropy rand.Source) ([]float64, ledger, error)
}

// advice returns a line that names the method with the smaller bound.
func (p Plan) advice() string {
	if p.Method == ReSQueBall {
		return fmt.Sprintf("%s has a bound: %.4g; %s has none", NoisySGD, p.Baseline, p.Method)
	}
	if p.Method == ReSQueSCO {
		return fmt.Sprintf("%s has the smaller bound, on the records alone: %.4g; %s on the population: %.4g", NoisySGD,
			p.Baseline, p.Method, p.Bound)
	}
	if p.Method != NoisySGD && p.Baseline < p.Bound {
		return fmt.Sprintf("%s has the smaller bound: %.4g, and %s %.4g", NoisySGD, p.Baseline, p.Method, p.Bound)
	}
	return fmt.Sprintf("%s has the smaller bound: %.4g", p.Method, p.Bound)
}

// NewPlan plans the method for these numbers, in seconds. It refuses numbers out of range, and too few
// records: the bound has to be below L R. Only ReSQueBall is exempt: it has no bound, and has to be asked for
// by name.
func NewPlan(p Public) (Plan, error) {
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	plan, err := newPlan(p)
	if err != nil {
		return Plan{}, err
	}
	if p.Method != ReSQueBall && vacuous(plan) {
		return Plan{},
			fmt.Errorf(
				"n = %d: the bound of %s is %.3g, not below L R = %.3g, which the origin has without data; want at least %s records",
				p.N, p.Method, plan.Bound, p.Lipschitz*p.Radius, enough(p))
	}
	return plan, nil
}

func vacuous(p Plan) bool { return !(p.Bound < p.Lipschitz*p.Radius) }

func newPlan(p Public) (Plan, error) {
	// No release at all has this epsilon for the accountant: its orders are bounded.
	if least, _ := accounting.NewRenyi().Epsilon(p.target().Delta); least >= p.target().Epsilon {
		return Plan{},
			fmt.Errorf("plan: epsilon %v at delta %v: want at least %.2g, below which the accountant shows nothing", p.Epsilon,
				p.Delta, 1.05*p.Epsilon*least/p.target().Epsilon)
	}
	base := p
	base.Method, base.Passes = NoisySGD, min(p.passes(), 10)
	if p.Method == NoisySGD {
		base = p
	}
	s, err := planSGD(base)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	plan := Plan{Public: p, Baseline: s.bound}
	plan.Passes = p.passes()
	switch p.Method {
	case ReSQue:
		v, bound, err := planPV(p, s.bound)
		if err != nil {
			return Plan{}, fmt.Errorf("plan: %w", err)
		}
		plan.method, plan.Bound, plan.Rounds, plan.Queries = v, bound, v.rounds, v.queries(p.N)
		plan.Rate, plan.Noise = v.gradRate.Float(), v.most*noiseOf(v.radius)
	case ReSQueSCO:
		l, err := planLocalized(p)
		if err != nil {
			return Plan{}, fmt.Errorf("plan: %w", err)
		}
		first := l.phases[0]
		plan.method, plan.Bound = l, l.bound
		plan.Rounds, plan.Queries = l.rounds()
		plan.Rate, plan.Noise = first.gradRate.Float(), first.most*noiseOf(first.radius)
	case ReSQueBall:
		b, err := planBall(p)
		if err != nil {
			return Plan{}, fmt.Errorf("plan: %w", err)
		}
		last := b.kinds[ofStep].last()
		plan.method, plan.Bound = b, math.Inf(1)
		plan.Rounds, plan.Queries = b.rounds(p.N)
		plan.Rate, plan.Noise = last.rate.Float(), last.kd/last.mu
	default:
		plan.method, plan.Bound, plan.Rounds, plan.Queries = s, s.bound, s.steps, float64(s.steps)*s.batch(p.N)
		plan.Rate, plan.Noise = s.rate.Float(), noiseOf(s.radius)
	}
	book := plan.method.ledger(p)
	if !book.fits() {
		return Plan{}, fmt.Errorf("plan: epsilon %v, delta %v are not met", p.Epsilon, p.Delta)
	}
	plan.Cost = book.cost()
	return plan, nil
}

// enough returns the smallest n at which the bound is below L R, to a tenth.
func enough(p Public) string {
	ok := func(n float64) bool {
		p.N = int(n)
		plan, err := newPlan(p)
		return err == nil && !vacuous(plan)
	}
	lo, hi := float64(p.N), 2*float64(p.N)
	for ; !ok(hi); hi *= 2 {
		if lo = hi; 2*hi > 1<<24 {
			return fmt.Sprintf("more than %d", 1<<24)
		}
	}
	for hi > 1.1*lo && hi > lo+1 {
		if mid := math.Floor(math.Sqrt(lo * hi)); ok(mid) {
			hi = mid
		} else {
			lo = max(mid, lo+1)
		}
	}
	return fmt.Sprintf("%.0f", math.Ceil(hi))
}

// A Result holds all that a run may publish.
type Result struct {
	// Theta is the point. Noisy SGD's is in B(R); that of the others may lie outside by a little, and the bound is
	// for it as it is.
	Theta []float64
	// Cost is the cost by the ledger at the end.
	Cost cost
}

// Fit learns from at most N records. A nil entropy is the system's; any other is for tests and simulations. The
// error holds nothing of the records. A context that is done ends the run between two steps, with nothing released
// but noisy steps in memory, and with its error.
func (p Plan) Fit(ctx context.Context, data Data, entropy rand.Source) (Result, error) {
	if p.Rounds == 0 {
		return Result{}, fmt.Errorf("fit: want a plan that NewPlan made")
	}
	r, err := newRecords(data, p.Public)
	if err != nil {
		return Result{}, err
	}
	if entropy == nil {
		entropy = randomizer.NewEntropy()
	}
	theta, book, err := p.method.run(ctx, p.Public, r, entropy)
	if err != nil {
		return Result{}, err
	}
	return Result{Theta: theta, Cost: book.cost()}, nil
}
