// Package planning makes plans: which method, in how many phases and rounds, with which cohorts, randomizer and
// constants, at the privacy that a task declares. A Problem describes the task, and whether the plan is of one of two
// kinds:
//
//   - A practical plan, the default of task files, is laid out by package learner/practical and has no risk bound:
//     practical.go, evenrounds.go.
//   - A proved plan makes the method's risk bound smallest. The bounds are in bounds.go and stability.go, the choice of
//     a method's constants for a phase in tune.go, the search over rounds in search.go, the choice among methods in
//     choose.go.
//
// Baselines are other ways to spend the same budget, by the same bounds.
//
// It promises the same plan for the same problem from the same build. It refuses problems that no method can be planned
// for, with the field or the theorem's condition in the text.
//
// The caller's steps: fill in a Problem, ForLoss; MakePlan; store the plan, since a newer version may plan differently.
package planning

import (
	"fmt"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// An Alternative is the plan that one method would make for a problem.
type Alternative struct {
	Method   string
	Proposal       // if Err is nil
	Err      error // why there is no plan
}

// MakePlan chooses phases, rounds, cohorts, randomizers and the method's constants: by Problem.Practical where it is
// set, else by minimising the method's risk bound over the number of rounds, with the accountant's real noise for the
// final choice; schedule.Auto chooses among methods by simulation. It takes up to a few seconds. The error names an
// invalid field, or explains why the method does not apply or that no cohort meets the privacy target.
func MakePlan(p Problem) (Proposal, error) {
	out, err := p.plan()
	if err != nil {
		return Proposal{}, fmt.Errorf("plan: %w", err)
	}
	return out, nil
}

func (p Problem) plan() (Proposal, error) {
	if err := p.validateRequest(); err != nil {
		return Proposal{}, err
	}
	if p.Practical != nil {
		return p.laidOut()
	}
	method := p.Algorithm
	if method == "" {
		method = p.DefaultMethod()
	}
	if method == schedule.Auto {
		return p.choose(p.alternatives())
	}
	return p.single(method)
}

// Alternatives plans every method, in the order of schedule.Names.
func (p Problem) Alternatives() ([]Alternative, error) {
	if err := p.validateRequest(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return p.alternatives(), nil
}

func (p Problem) alternatives() []Alternative {
	out := make([]Alternative, 0, len(schedule.Names()))
	for _, m := range schedule.Names() {
		one := Alternative{Method: m}
		one.Proposal, one.Err = p.single(m)
		out = append(out, one)
	}
	return out
}

// validateRequest refuses a problem for which no method can be planned.
func (p Problem) validateRequest() error {
	if err := p.validate(); err != nil {
		return err
	}
	if p.Silos.Count > 0 {
		return p.request(p.Silos.Reports, 1).Validate()
	}
	return p.request(p.Users, 1).Validate()
}

// single plans one method.
func (p Problem) single(method string) (Proposal, error) {
	if err := p.Applies(method); err != nil {
		return Proposal{}, fmt.Errorf("%s: %w", method, err)
	}
	p.minimizer = traitsOf(method).Minimizers
	from, err := p.accountedFor()
	if err != nil {
		return Proposal{}, err
	}
	d, err := newDraft(p, method, from)
	if err != nil {
		return Proposal{}, fmt.Errorf("%s: %w", method, err)
	}
	out, err := d.plan()
	if err != nil {
		return Proposal{}, err
	}
	return out, charge(&out, p)
}

func (p Problem) accountedFor() (accounted, error) {
	mu, err := accounting.GaussianMu(accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta})
	return accounted{problem: p, mu: mu}, err
}
