package learner_test

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPlansThatBuildNothing: constants that belong to no method, do not go with how the plan goes on, or are
// out of range are refused, and named.
func TestPlansThatBuildNothing(t *testing.T) {
	phase := func(rounds uint64, of *wire.Phase) *wire.Phase {
		of.Rounds, of.Cohort, of.Users, of.RoundsPerUser, of.Mechanism = rounds, 5, 5*rounds, 1, &wire.Mechanism{Dim: 2}
		return of
	}
	descent := func(rounds uint64, eta float64) *wire.Phase {
		return phase(rounds, &wire.Phase{Constants: &wire.Phase_Descent{Descent: &wire.Descent{StepSize: eta}}})
	}
	accelerated := func(rounds uint64, v, beta float64) *wire.Phase {
		return phase(rounds, &wire.Phase{Constants: &wire.Phase_Acceleration{Acceleration: &wire.Acceleration{V: v,
			Smoothness: beta}}})
	}
	plan := func(continuous wire.Continuous, phases ...*wire.Phase) *wire.Plan {
		return &wire.Plan{Continuous: continuous, Set: &wire.Set{Radius: 1}, Phases: phases}
	}
	const (
		ends     = wire.Continuous_CONTINUOUS_NO
		constant = wire.Continuous_CONTINUOUS_CONSTANT
		decaying = wire.Continuous_CONTINUOUS_DECAYING
		epochs   = wire.Continuous_CONTINUOUS_EPOCHS
	)
	for _, p := range []*wire.Plan{
		plan(ends, descent(3, 1)), plan(ends, accelerated(3, 4, 2), accelerated(3, 4, 2)), plan(epochs, accelerated(3, 4, 2),
			accelerated(3, 4, 2)),
		plan(constant, descent(3, 1)), plan(decaying, descent(3, 1)), plan(epochs, accelerated(3, 4, 2)),
	} {
		if _, err := learner.New(p); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	torus := plan(ends, descent(3, 1))
	torus.Set.Kind = "torus"
	scored := plan(ends, descent(3, 1))
	scored.Phases[0].Mechanism = &wire.Mechanism{Dim: 3, Scores: 1}
	for _, c := range []struct {
		want string
		plan *wire.Plan
	}{
		{"phases", nil}, {"phases", plan(ends)}, {"set", torus}, {"scores", scored},
		{"constants: none", plan(ends, phase(3, &wire.Phase{}))}, {"phase 2: constants: none", plan(ends, descent(3, 1),
			phase(3, &wire.Phase{}))},
		{"does not go with", plan(epochs, descent(3, 1))}, {"does not go with", plan(constant, accelerated(3, 4, 2))},
		{"does not go with", plan(decaying, accelerated(3, 4, 2))}, {"does not go with", plan(9, descent(3, 1))},
		{"step size", plan(ends, descent(3, 0))}, {"step size", plan(decaying, descent(3, 0))},
		{"step size", plan(decaying, descent(1<<30, math.MaxFloat64/2))},
		{"v and smoothness", plan(epochs, accelerated(3, 1, 2))},
		{"v: 0", plan(ends, accelerated(3, 4, 2), accelerated(1, 0, 0))},
		{"steps", plan(ends, accelerated(0, 1, 1))}, {"horizon", plan(constant, descent(0, 1))},
		{"horizon", plan(epochs, accelerated(0, 4, 1))},
	} {
		if _, err := learner.New(c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %q", c.plan, err, c.want)
		}
	}
}
