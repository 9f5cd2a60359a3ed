package manifest

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Place is where a step stands in a plan.
type Place struct {
	Phase *wire.Phase
	Index int    // of the phase in the plan
	First uint64 // step of the phase
}

// Moments says whether the phase's reports are of second moments.
func (p Place) Moments() bool { return moments(p.Phase) }

func moments(f *wire.Phase) bool { return f.GetStatistic() == wire.Statistic_STATISTIC_SECOND_MOMENTS }

// Gradients is the first phase of a plan whose steps are the method's: the one after the second moments, where there are such.
func Gradients(plan *wire.Plan) *wire.Phase {
	phases := plan.GetPhases()
	if len(phases) > 1 && moments(phases[0]) {
		return phases[1]
	}
	if len(phases) == 0 {
		return nil
	}
	return phases[0]
}

// Dim is the dimension of theta.
func Dim(plan *wire.Plan) int {
	m := Gradients(plan).GetMechanism()
	return int(m.GetDim()) - int(m.GetScores())
}

// Scales is how many scales the rounds of a phase carry: as many as there are second moments in the phase before it, or 0.
func (p Place) Scales(plan *wire.Plan) int {
	if first := plan.GetPhases()[0]; moments(first) && !p.Moments() {
		return int(first.GetMechanism().GetDim())
	}
	return 0
}

// Last is the last step of the phase, as planned: the last phase of an endless plan goes on after it.
func (p Place) Last() uint64 { return p.First + p.Phase.GetRounds() - 1 }

// Interactive says whether the users of the phase answer each of its rounds.
func (p Place) Interactive() bool { return p.Phase.GetRoundsPerUser() > 1 }

// PhaseOf is the phase of a step; false for a step that the plan does not have. Steps count over all phases, from 1. The
// plan is one that CheckTask passed.
func PhaseOf(plan *wire.Plan, step uint64) (Place, bool) {
	first := uint64(1)
	for i, f := range plan.GetPhases() {
		if step >= first && (step-first < f.GetRounds() || endless(plan, i)) {
			return Place{Phase: f, Index: i, First: first}, true
		}
		first += f.GetRounds()
	}
	return Place{}, false
}

// Steps is how many steps the plan has in all its phases. An endless one has no last step: the answer is the largest
// number.
func Steps(plan *wire.Plan) uint64 {
	if Endless(plan) {
		return math.MaxUint64
	}
	return Planned(plan)
}

// Planned is how many steps the plan was made for: those of Steps, or of an endless plan those of its horizon.
func Planned(plan *wire.Plan) (n uint64) {
	for _, f := range plan.GetPhases() {
		n += f.GetRounds()
	}
	return n
}

// Endless says whether a plan goes on for ever.
func Endless(plan *wire.Plan) bool { return plan.GetContinuous() != wire.Continuous_CONTINUOUS_NO }

// endless says whether a phase goes on for ever: the last one of such a plan.
func endless(plan *wire.Plan, phase int) bool { return Endless(plan) && phase == len(plan.Phases)-1 }

// Users is how many users take part in all phases together; of an endless plan, in those of its horizon.
func Users(plan *wire.Plan) (n uint64) {
	for _, f := range plan.GetPhases() {
		n += f.GetUsers()
	}
	return n
}

// RoundsPerUser is how many rounds one user answers at most: those of one phase.
func RoundsPerUser(plan *wire.Plan) (most uint32) {
	for _, f := range plan.GetPhases() {
		most = max(most, f.GetRoundsPerUser())
	}
	return most
}

// Cohort is how many users the round of a step takes: the phase's cohort, and at its last step all users of the phase
// that are left. A phase without end has no last step, and in an interactive one the cohort is everybody. It is 0 for a
// step that the plan does not have.
func Cohort(plan *wire.Plan, step uint64) uint64 {
	place, found := PhaseOf(plan, step)
	switch {
	case !found:
		return 0
	case step == place.Last() && !endless(plan, place.Index):
		return LastCohort(place.Phase)
	}
	return place.Phase.Cohort
}

// LastCohort is the cohort of a phase's last step.
func LastCohort(f *wire.Phase) uint64 {
	if f.RoundsPerUser > 1 {
		return f.Cohort
	}
	return f.Users - (f.Rounds-1)*f.Cohort
}

// RoundOf is the round that a task allows at a step, at a point: the one that Follows lets pass, but for the scales of a task of second
// moments, which are the caller's. It shares the mechanism with the plan. Of a step that the plan does not have it is no round at all.
func RoundOf(task *wire.Task, taskHash stream.Hash, round, step uint64, point []float64) *wire.Round {
	plan := task.GetPlan()
	place, _ := PhaseOf(plan, step)
	f := place.Phase
	return &wire.Round{
		Version: stream.Version, TaskHash: slices.Clone(taskHash[:]), Round: round, Step: step, Point: point,
		Mechanism: f.GetMechanism(), Cohort: Cohort(plan, step), Minimum: f.GetMinimum(), DeadlineMs: plan.GetDeadlineMs(),
		Trust: plan.GetTrust(), Smoothing: f.GetSmoothing(), Statistic: f.GetStatistic(),
	}
}

// PhaseRound is the costliest round of a phase, without a point and a number: what the accountant needs to charge it. More
// users cost each of them no more, so it is the one with the smaller cohort.
func PhaseRound(plan *wire.Plan, f *wire.Phase) *wire.Round {
	return &wire.Round{Round: 1, Cohort: f.GetCohort(), Minimum: f.GetMinimum(), Mechanism: f.GetMechanism(), Trust: plan.GetTrust()}
}
