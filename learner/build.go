package learner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// New builds a plan's method at the plan's starting point, or at the set's if the plan has none. The constants of its
// phases decide which method it is. The error names the phase and the constant that does not fit.
func New(plan *wire.Plan) (Algorithm, error) {
	a, err := build(plan)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return a, nil
}

// ErrOtherBuild is wrapped by errors of Resume for a state that this build would not write for the plan.
var ErrOtherBuild = errors.New(
	"it was written by another version of panlearn, as far as its store is whole: go on with the task in that version, or " +
		"take the model out with its learner snapshot and begin the task again under another name; " +
		"docs/how-to/upgrades.md has the way back")

// Resume builds a plan's method and gives it the state that a learner of the plan stored.
func Resume(plan *wire.Plan, state []byte) (Algorithm, error) {
	a, err := New(plan)
	if err != nil {
		return nil, err
	}
	if err := a.UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("stored optimizer state: %w: %w", err, ErrOtherBuild)
	}
	return a, nil
}

func build(plan *wire.Plan) (Algorithm, error) {
	card := manifest.Scorecard(plan)
	phases := plan.GetPhases()
	if manifest.Gradients(plan) == nil {
		return nil, fmt.Errorf("phases: none of gradients")
	}
	want := 0
	if card != nil {
		want = card.Dim()
	}
	if scores := int(manifest.Gradients(plan).GetMechanism().GetScores()); scores != want {
		return nil, fmt.Errorf("scores: %d coordinates, want %d for its scorecard", scores, want)
	}
	var a method.Method
	var err error
	if plan.Practical != nil {
		a, err = inPractice(plan)
	} else {
		a, err = inPhases(plan, phases)
	}
	if err != nil || card == nil {
		return a, err
	}
	repeated := slices.ContainsFunc(phases, func(f *wire.Phase) bool { return f.RoundsPerUser > 1 })
	return method.NewValidated(*card, repeated, a)
}

// inPractice builds the method of a practical plan.
func inPractice(plan *wire.Plan) (method.Method, error) {
	return method.NewPractical(method.PracticalConfig{Problem: *manifest.Practical(plan), Layout: LayoutOf(plan),
		Continuous: continuous[plan.Continuous]})
}

// LayoutOf returns the layout of a practical plan's users.
func LayoutOf(plan *wire.Plan) practical.Layout {
	layout := practical.Layout{Unit: plan.Practical.Unit, Method: practical.Acceleration}
	for _, f := range plan.Phases {
		switch f.Statistic {
		case wire.Statistic_STATISTIC_MOMENTS:
			layout.MomentUsers = f.Cohort * max(1, f.Mechanism.GetUnits())
		case wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX:
			layout.MatrixUsers, layout.Method = f.Cohort*max(1, f.Mechanism.GetUnits()), practical.Descent
		default:
			layout.Rounds += f.Rounds
			if f.Top > 0 {
				layout.Base, layout.Top = f.Minimum, f.Top
			}
			if f.Top > 0 && plan.Silos > 0 { // the cohorts of silos do not change
				layout.Base, layout.Units = f.Top, max(1, f.Mechanism.GetUnits())
			}
		}
	}
	return layout
}

// continuous are the words for the ways to go on.
var continuous = map[wire.Continuous]string{
	wire.Continuous_CONTINUOUS_CONSTANT: schedule.Constant,
	wire.Continuous_CONTINUOUS_DECAYING: schedule.Decaying,
	wire.Continuous_CONTINUOUS_EPOCHS:   schedule.Epochs,
	wire.Continuous_CONTINUOUS_ADAPTIVE: schedule.Adaptive,
}

// inPhases builds the method of the phases of gradients.
func inPhases(plan *wire.Plan, phases []*wire.Phase) (method.Method, error) {
	set, err := manifest.Set(plan)
	if err != nil {
		return nil, err
	}
	var stages []method.Stage
	for i, f := range phases {
		continuous := wire.Continuous_CONTINUOUS_NO
		if i == len(phases)-1 {
			continuous = plan.Continuous
		}
		one, err := stage(plan, f, set, continuous)
		if err != nil {
			return nil, fmt.Errorf("phase %d: %w", len(plan.Phases)-len(phases)+i+1, err)
		}
		stages = append(stages, one)
	}
	var start []float64 // nil: the set's own
	if len(plan.Start) > 0 {
		start = plan.Start
	}
	if len(stages) == 1 {
		return stages[0].Begin(start)
	}
	return method.NewRestarts(method.RestartsConfig{Dim: manifest.Dim(plan), Set: set, Start: start, Stages: stages})
}

// stage returns the configuration of one phase.
func stage(plan *wire.Plan, f *wire.Phase, set convex.Set, continuous wire.Continuous) (method.Stage, error) {
	dim := manifest.Dim(plan)
	switch c := f.GetConstants().(type) {
	case *wire.Phase_Descent:
		eta := c.Descent.GetStepSize()
		switch continuous {
		case wire.Continuous_CONTINUOUS_NO:
			return method.PSGDConfig{Dim: dim, Set: set, Steps: f.Rounds, StepSize: eta, Ridge: plan.Ridge,
				Mu: c.Descent.GetMu()}, nil
		case wire.Continuous_CONTINUOUS_CONSTANT, wire.Continuous_CONTINUOUS_DECAYING:
			return method.StreamConfig{Dim: dim, Set: set, Horizon: f.Rounds, StepSize: eta,
				Decaying: continuous == wire.Continuous_CONTINUOUS_DECAYING, Ridge: plan.Ridge}, nil
		}
	case *wire.Phase_Acceleration:
		a := c.Acceleration
		switch continuous {
		case wire.Continuous_CONTINUOUS_NO:
			return method.PAGDConfig{Dim: dim, Set: set, Steps: f.Rounds, V: a.GetV(), Mu: a.GetMu(), Ridge: plan.Ridge,
				Interactive: manifest.RoundsPerUser(plan) > 1}, nil
		case wire.Continuous_CONTINUOUS_EPOCHS:
			return method.EpochsConfig{Dim: dim,
				Set: set, Horizon: f.Rounds, V: a.GetV(), Smoothness: a.GetSmoothness(), Mu: a.GetMu(), Ridge: plan.Ridge}, nil
		}
	case *wire.Phase_Prox:
		if continuous == wire.Continuous_CONTINUOUS_NO {
			return method.ProxConfig{Dim: dim, Set: set, Steps: f.Rounds, Average: method.ProxAverage(f.Rounds)}, nil
		}
	default:
		return nil, fmt.Errorf("constants: none of a method")
	}
	return nil, fmt.Errorf("constants: %T does not go with %v", f.GetConstants(), continuous)
}
