package learner_test

import (
	"errors"
	"fmt"
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

// TestStateOfAnotherVersion: what a method of another version learned is refused with both numbers and the way out.
func TestStateOfAnotherVersion(t *testing.T) {
	plan := &wire.Plan{Set: &wire.Set{Radius: 1}, Phases: []*wire.Phase{{Rounds: 3, Cohort: 5, Users: 15, RoundsPerUser: 1,
		Mechanism: &wire.Mechanism{Dim: 2}, Constants: &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 1}}}}}
	a, err := learner.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	state, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learner.Resume(plan, state); err != nil {
		t.Fatal(err)
	}
	state[0]++
	for _, other := range [][]byte{state, state[:1]} {
		if _, err := learner.Resume(plan, other); !errors.Is(err, learner.ErrOtherBuild) ||
			!strings.Contains(err.Error(), fmt.Sprintf("format version %d, this build reads version %d", state[0], state[0]-1)) ||
			!strings.Contains(err.Error(), "written by another version of panlearn") {
			t.Errorf("%d bytes: %v", len(other), err)
		}
	}
}
