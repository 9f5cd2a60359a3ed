package manifest

import (
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Stint groups the phases that one user takes part in: a phase, and the phases after it that the same users answer
// again. Its cost is the cost of all of them together.
type Stint struct {
	Index       int    // of its first phase
	Phases      int    // how many
	First, Last uint64 // its steps, as planned
	Rounds      uint32 // in which one user takes part, over all phases
}

// stintOf returns the stint of a phase.
func stintOf(plan *wire.Plan, phase int) Stint {
	s := Stint{First: 1}
	for i, f := range plan.GetPhases() {
		if !f.GetAgain() {
			if i > phase {
				break
			}
			s = Stint{Index: i, First: s.Last + 1, Last: s.Last}
		}
		s.Phases++
		s.Last += f.GetRounds()
		s.Rounds += f.GetRoundsPerUser()
	}
	return s
}

// Interactive reports whether the users of the phase answer more than one round.
func (p Place) Interactive() bool { return p.Stint.Rounds > 1 }

// Releases returns what the accountant must charge one user for a round together with all others of its stint: one
// release for each phase. honest is the caller's own assumption, not the learner's: a device passes its policy's.
// Releases returns the errors of accounting.Release.Validate.
func (p Place) Releases(honest accounting.Fraction) ([]accounting.Release, error) {
	out := make([]accounting.Release, p.Stint.Phases)
	for i := range out {
		at := p
		if k := p.Stint.Index + i; k != p.Index {
			at = Costliest(p.Plan, k)
		}
		var err error
		if out[i], err = at.release(honest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// OwnBudget returns the releases of the stint in which an organisation takes part and, under trust local, the budget
// that its noise must meet if its size differs from the planned one: one of its units pays no more than the plan costs
// one of a silo as planned, so that the printed cost holds for every silo.
func (p Place) OwnBudget() ([]accounting.Release, accounting.Budget, error) {
	of, err := p.Releases(accounting.One)
	if err != nil {
		return nil, accounting.Budget{}, err
	}
	b := accounting.Budget{Epsilon: p.Plan.EpsilonBudget, Delta: p.Plan.Delta}
	said, err := accounting.RepeatedWithin(1, [][]accounting.Release{of}, b)
	b.Epsilon = min(said.Epsilon, accounting.MaxEpsilon)
	return of, b, err
}
