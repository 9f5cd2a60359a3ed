package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A Curve predicts the risk of one method for other numbers of users and other epsilons, with the noise level that the
// accountant found for one plan. A point takes milliseconds and is within a few percent of a plan for that point.
type Curve struct {
	p      Problem
	method string
	factor float64
	source func(Problem) (source, error)
}

// Curve returns the curve through a plan of the problem.
func (p Problem) Curve(plan Proposal) (Curve, error) {
	from, err := p.accountedFor()
	if err != nil || len(plan.Forecasts) == 0 {
		return Curve{}, fmt.Errorf("curve: no plan, or no level of noise: %w", err)
	}
	first, privacy := manifest.Gradients(plan.Plan), plan.First().Privacy
	level := privacy.NoiseStd*privacy.NoiseStd + privacy.RoundingStd*privacy.RoundingStd
	return Curve{p: p, method: plan.Plan.Algorithm, factor: level / from.about(plan.First().units()).model(first.Cohort,
		uint64(manifest.RoundsPerUser(plan.Plan))).total(),
		source: func(q Problem) (source, error) { return q.accountedFor() }}, nil
}

// Curve returns the curve through a baseline other than the paper's.
func (y Baseline) Curve(p Problem) (Curve, error) {
	if y.Err != nil || y.Name == BaselinePaper {
		return Curve{}, fmt.Errorf("curve: no prediction for the baseline %s", y.Name)
	}
	q := baselineProblem(p)
	if y.Name == BaselineMultiPass {
		q.MaxRounds = maxPasses
	}
	return Curve{p: q, method: y.Method, factor: 1, source: func(q Problem) (source, error) {
		mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: q.Epsilon, Delta: q.Delta})
		if err != nil {
			return nil, err
		}
		alone, _, err := localOf(q, mu)
		if y.Name == BaselineLocal {
			return alone, err
		}
		return central(mu, alone), err
	}}, nil
}

// At returns the predicted risk for a number of users and an epsilon, all else being equal; +Inf if there is no plan.
func (c Curve) At(users uint64, epsilon float64) float64 {
	q := c.p
	if q.Users, q.Epsilon = users, epsilon; q.Silos.Count > 0 { // as many, with more or fewer units
		q.Silos.Units = max(1, users/q.Silos.Count)
		q.Silos.Least, q.Users = q.Silos.Units, q.Silos.Units*q.Silos.Count
	}
	if q.Cohort > users || q.Silos.Count == 0 && q.Minimum > users || q.validate() != nil {
		return math.Inf(1)
	}
	from, err := c.source(q)
	if err != nil {
		return math.Inf(1)
	}
	d, err := newDraft(q, c.method, scaled{source: from, factor: c.factor})
	if err != nil {
		return math.Inf(1)
	}
	plan, err := d.plan()
	if err != nil {
		return math.Inf(1)
	}
	return plan.ExcessRisk
}

// UsersNeeded returns the least number of users, to a hundredth, for which the bound is below trivial, the risk of the
// start. It returns false if 2^39 are not enough.
func (c Curve) UsersNeeded(trivial float64) (uint64, bool) {
	const most = 1 << 39
	enough := func(n uint64) bool { return c.At(n, c.p.Epsilon) < trivial }
	high := uint64(1)
	for !enough(high) {
		if high >= most {
			return 0, false
		}
		high *= 2
	}
	for low := high / 2; high-low > max(1, high/100); {
		if mid := low + (high-low)/2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}
