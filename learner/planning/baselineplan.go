package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// centralMechanism is what a trusted curator adds.
const centralMechanism = "analytic Gaussian mechanism of a curator"

// A BaselinePlan is a plan of the same method for another way to spend the same budget, to be simulated beside the task's own.
type BaselinePlan struct {
	Name      string
	Mechanism string // what adds the noise
	Proposal         // its privacy is not this system's, so it has no randomizer

	source, moments source
}

// NoiseStd is the standard deviation of one coordinate of the mean of a round of m users, in units of what is reported.
func (b BaselinePlan) NoiseStd(phase int, m uint64) float64 {
	from := b.source
	f := b.Plan.Phases[phase]
	if f.Statistic == wire.Statistic_STATISTIC_SECOND_MOMENTS {
		from = b.moments
	}
	return f.Mechanism.ClipNorm * math.Sqrt(from.model(m, uint64(f.RoundsPerUser)).total())
}

// BaselinePlan plans a baseline with the method named: BaselineCentral or BaselineLocal with one of the one-pass methods or of the
// interactive ones, BaselineMultiPass with an interactive one. The cohort of the problem is kept where a curator adds the noise.
func (pl *Planner) BaselinePlan(p Problem, name, method string) (BaselinePlan, error) {
	if err := p.check(); err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta})
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	q := baselineProblem(p)
	alone, mechanism, err := localOf(q, mu)
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	q.MaxRounds = p.MaxRounds
	out := BaselinePlan{Name: name, Mechanism: centralMechanism, source: central{mu: mu, perUser: alone.perUser}}
	switch name {
	case BaselineCentral:
		q.Cohort, q.Minimum = p.Cohort, p.Minimum
	case BaselineMultiPass:
		if !traitsOf(method).Interactive {
			return BaselinePlan{}, fmt.Errorf("baseline %s: %s is of one pass", name, method)
		}
	case BaselineLocal:
		if traitsOf(method).Interactive {
			return BaselinePlan{}, fmt.Errorf("baseline %s: users of %s send several messages", name, method)
		}
		out.source, out.Mechanism = alone, mechanism
	default:
		return BaselinePlan{}, fmt.Errorf("baseline %q: want %s, %s or %s", name, BaselineCentral, BaselineLocal, BaselineMultiPass)
	}
	if err := q.Applies(method); err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %s: %w", name, method, err)
	}
	d, err := newDraft(q, method, out.source)
	if err == nil {
		out.Proposal, err = d.plan()
	}
	if err == nil && p.Precondition != nil {
		if alone, _, err = localOf(p.ofMoments(), mu); name == BaselineLocal {
			out.moments = alone
		} else {
			out.moments = central{mu: mu, perUser: alone.perUser}
		}
		if err == nil {
			err = out.prepend(p, out.moments)
		}
	}
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	return out, nil
}
