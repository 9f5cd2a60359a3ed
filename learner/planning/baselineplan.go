package planning

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// centralMechanism names the mechanism of a trusted curator.
const centralMechanism = "analytic Gaussian mechanism of a curator"

// A BaselinePlan is a plan of the same method for another way to spend the same budget, to simulate beside the task's
// own plan.
type BaselinePlan struct {
	Name      string
	Mechanism string // what adds the noise
	Proposal         // its privacy is not this system's, so it has no randomizer

	sources []source // of each phase
}

// NoiseStd returns the standard deviation of one coordinate of the mean of a round of m users, in units of the reported
// vector.
func (b BaselinePlan) NoiseStd(phase int, m uint64) float64 {
	at := manifest.Costliest(b.Plan, phase) // users who answer several phases pay for all rounds of these
	return at.Phase.Mechanism.ClipNorm * math.Sqrt(b.sources[phase].model(m, uint64(at.Stint.Rounds)).total())
}

// BaselinePlan plans a baseline with the method named: BaselineCentral or BaselineLocal with one of the one-pass
// methods or of the interactive ones, BaselineMultiPass with an interactive one. With a curator it keeps the problem's
// cohort.
func (p Problem) BaselinePlan(name, method string) (BaselinePlan, error) {
	if err := p.validateRequest(); err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta})
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	if p.Practical != nil {
		return practicalBaseline(p, name, mu)
	}
	q := baselineProblem(p)
	alone, mechanism, err := localOf(q, mu)
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	q.MaxRounds = p.MaxRounds
	out := BaselinePlan{Name: name, Mechanism: centralMechanism}
	from := central(mu, alone)
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
		from, out.Mechanism = alone, mechanism
	default:
		return BaselinePlan{}, fmt.Errorf("baseline %q: want %s, %s or %s", name, BaselineCentral, BaselineLocal,
			BaselineMultiPass)
	}
	if err := q.Applies(method); err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %s: %w", name, method, err)
	}
	d, err := newDraft(q, method, from)
	if err == nil {
		out.Proposal, err = d.plan()
	}
	if err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	out.sources = slices.Repeat([]source{from}, len(out.Plan.Phases))
	return out, nil
}

// practicalBaseline returns a practical plan with the noise of a baseline.
func practicalBaseline(p Problem, name string, mu float64) (BaselinePlan, error) {
	q := baselineProblem(p)
	// one message is private by itself, not several
	q.Interactive = p.Interactive && name != BaselineLocal || name == BaselineMultiPass
	q.Cohort, q.Minimum, q.MaxRounds = p.Cohort, p.Minimum, p.MaxRounds
	out := BaselinePlan{Name: name, Mechanism: centralMechanism}
	of := func(dim int) (source, error) {
		r := q
		r.Dim = dim
		alone, mechanism, err := localOf(r, mu)
		from := central(mu, alone)
		if name == BaselineLocal {
			from, out.Mechanism = alone, mechanism
		}
		return from, err
	}
	var err error
	if out.Proposal, err = practicalPlan(q, of); err != nil {
		return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
	}
	for _, f := range out.Plan.Phases {
		from, err := of(int(f.Mechanism.Dim))
		if err != nil {
			return BaselinePlan{}, fmt.Errorf("baseline %s: %w", name, err)
		}
		out.sources = append(out.sources, from)
	}
	return out, nil
}
