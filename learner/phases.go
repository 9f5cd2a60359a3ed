package learner

// Rounds returns T, the steps of all phases.
func (p Plan) Rounds() (total uint64) {
	for _, ph := range p.Phases {
		total += ph.Rounds
	}
	return total
}

// First returns the first phase that takes steps of the method: the one after the moments, where there are such.
func (p Plan) First() Phase {
	if p.Phases[0].Moments {
		return p.Phases[1]
	}
	return p.Phases[0]
}

// TakenUsers returns how many users the phases take; what is over is left out.
func (p Plan) TakenUsers() (total uint64) {
	for _, ph := range p.Phases {
		total += ph.Users
	}
	return total
}

// Epsilon returns the largest epsilon of a phase: a user takes part in one of them.
func (p Plan) Epsilon() (worst float64) {
	for _, ph := range p.Phases {
		worst = max(worst, ph.Privacy.Epsilon)
	}
	return worst
}

// PhaseOf returns the index of the phase of a step, from 1 to Rounds, and the step's number within it, from 1. The last phase
// of a continuous plan goes on beyond Rounds.
func (p Plan) PhaseOf(step uint64) (phase int, within uint64) {
	for i, ph := range p.Phases {
		if step <= ph.Rounds || (p.Continuous != "" && i == len(p.Phases)-1) {
			return i, step
		}
		step -= ph.Rounds
	}
	panic("learner: a step beyond the plan")
}

// CohortOf returns the users wanted for a step, from 1 to Rounds, or beyond where the plan is continuous.
func (p Plan) CohortOf(step uint64) uint64 {
	i, within := p.PhaseOf(step)
	if endless := p.Continuous != "" && i == len(p.Phases)-1; within == p.Phases[i].Rounds && !endless {
		return p.Phases[i].LastCohort
	}
	return p.Phases[i].Cohort
}
