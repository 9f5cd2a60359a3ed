package manifest

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// looks reports whether a phase's reports are of moments, and not of gradients at a point.
func looks(f *wire.Phase) bool { return f.GetStatistic() != wire.Statistic_STATISTIC_GRADIENT }

// Gradients returns the first phase of a plan with the method's own steps, after any phases of moments; nil if there is
// none.
func Gradients(plan *wire.Plan) *wire.Phase {
	for _, f := range plan.GetPhases() {
		if !looks(f) {
			return f
		}
	}
	return nil
}

// Dim returns the dimension of theta.
func Dim(plan *wire.Plan) int {
	m := Gradients(plan).GetMechanism()
	return int(m.GetDim()) - int(m.GetScores())
}

// Point returns the number of values of a round's point; 0 for a round of moments.
func (p Place) Point() int {
	if looks(p.Phase) {
		return 0
	}
	return int(p.Phase.GetMechanism().GetDim()) - int(p.Phase.GetMechanism().GetScores())
}

// Framed reports whether the rounds of a phase announce a frame: the rounds of a practical plan after the first
// moments.
func (p Place) Framed() bool {
	return p.Plan.GetPractical() != nil && p.Phase.GetStatistic() != wire.Statistic_STATISTIC_MOMENTS
}

// Last returns the last step of the phase, as planned: the last phase of an endless plan goes on after it.
func (p Place) Last() uint64 { return p.First + p.Phase.GetRounds() - 1 }

// PhaseOf returns the place of a step; false if the plan does not have the step. Steps count over all phases, from 1.
// The plan must have passed CheckTask.
func PhaseOf(plan *wire.Plan, step uint64) (Place, bool) {
	first := uint64(1)
	for i, f := range plan.GetPhases() {
		if step >= first && (step-first < f.GetRounds() || endless(plan, i)) {
			at := Place{Plan: plan, Phase: f, Index: i, First: first, Cohort: f.GetCohort(), Stint: stintOf(plan, i),
				Deadline: Deadline(plan)}
			if step == at.Last() && !endless(plan, i) {
				at.Cohort = LastCohort(f)
			}
			if at.Planned = at.Cohort; f.GetTop() > 0 {
				at.Cohort = f.GetTop()
			}
			return at, true
		}
		first += f.GetRounds()
	}
	return Place{}, false
}

// Steps returns the number of steps of the plan in all its phases; the largest uint64 for an endless plan.
func Steps(plan *wire.Plan) uint64 {
	if Endless(plan) {
		return math.MaxUint64
	}
	return Planned(plan)
}

// Planned returns the number of steps that the plan was made for: all of them or, in an endless plan, the steps of its
// horizon.
func Planned(plan *wire.Plan) (n uint64) {
	for _, f := range plan.GetPhases() {
		n += f.GetRounds()
	}
	return n
}

// Endless reports whether a plan goes on for ever.
func Endless(plan *wire.Plan) bool { return plan.GetContinuous() != wire.Continuous_CONTINUOUS_NO }

// endless reports whether a phase goes on for ever: the last one of an endless plan.
func endless(plan *wire.Plan, phase int) bool { return Endless(plan) && phase == len(plan.Phases)-1 }

// Users returns the number of users that take part in all phases together; in an endless plan, within its horizon.
func Users(plan *wire.Plan) (n uint64) {
	for _, f := range plan.GetPhases() {
		if !f.GetAgain() {
			n += f.GetUsers()
		}
	}
	return n
}

// Spare returns how many of the users that a practical plan was made for are in no round's cohort, so that its rounds
// fill although as many are lost; 0 for other plans.
func Spare(plan *wire.Plan) uint64 {
	if plan.GetSilos() > 0 || Endless(plan) {
		return 0
	}
	n := Users(plan)
	return max(plan.GetPractical().GetUsers(), n) - n
}

// Waiting returns the number of users that the plan has for the round of a step and for those after it, spare users
// included; at least the round's own. In an endless plan the users of its horizon wait for ever. Of each silo one
// report waits.
func Waiting(at Place, step uint64) uint64 {
	if silos := at.Plan.GetSilos(); silos > 0 {
		return max(silos, at.Cohort)
	}
	n := Users(at.Plan) + Spare(at.Plan)
	if !Endless(at.Plan) {
		for _, f := range at.Plan.GetPhases()[:at.Stint.Index] {
			if !f.GetAgain() {
				n -= f.GetUsers()
			}
		}
		if !at.Interactive() {
			n -= (step - at.First) * at.Phase.GetCohort()
		}
	}
	return max(n, at.Cohort)
}

// RoundsPerUser returns the largest number of rounds in which one user takes part: the rounds of one stint.
func RoundsPerUser(plan *wire.Plan) (most uint32) {
	for i := range plan.GetPhases() {
		most = max(most, stintOf(plan, i).Rounds)
	}
	return most
}

// Cohort returns the number of users that the round of a step takes: the phase's cohort, and at its last step all
// users of the phase that are left. A phase without end has no last step, in an interactive phase the cohort is
// everybody, and in an adaptive one it is the largest: its rounds state their own. Cohort is 0 for a step that the
// plan does not have.
func Cohort(plan *wire.Plan, step uint64) uint64 {
	at, _ := PhaseOf(plan, step)
	return at.Cohort
}

// LastCohort returns the cohort of a phase's last step.
func LastCohort(f *wire.Phase) uint64 {
	if f.RoundsPerUser > 1 || looks(f) || f.GetTop() > 0 {
		return f.Cohort
	}
	return f.Users - (f.Rounds-1)*f.Cohort
}

// RoundOf returns the Round of a step, with its point and frame.
func RoundOf(taskHash stream.Hash, round, step uint64, point []float64, frame *wire.Frame) *wire.Round {
	return &wire.Round{Version: stream.Version, TaskHash: slices.Clone(taskHash[:]), Round: round, Step: step,
		Point: point, Frame: frame}
}

// Costliest returns the place of the costliest round of a phase. More users cost each of them no more, so it is a round
// with the smaller cohort.
func Costliest(plan *wire.Plan, phase int) Place {
	f := plan.GetPhases()[phase]
	return Place{Plan: plan, Phase: f, Index: phase, Cohort: f.GetCohort(), Planned: f.GetCohort(),
		Stint: stintOf(plan, phase)}
}
