package learner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
)

// New builds the plan's method at its start, the set's. The name of the algorithm is a method (psgd, pagd or pgd) and what
// is added to it: -envelope where every phase has a Smoothing, -restarts where there may be more phases than one.
func New(p Plan) (Algorithm, error) {
	var a method.Method
	var err error
	if p.Precondition != nil {
		a, err = p.preconditioned()
	} else {
		a, err = p.unscaled()
	}
	if err != nil {
		return nil, err
	}
	if p.Validation == nil {
		if p.ExtraDim != 0 {
			return nil, fmt.Errorf("plan: %d extra coordinates, want 0 without a validation", p.ExtraDim)
		}
		return a, nil
	}
	return p.validated(a)
}

// validated reads the scores that come after the gradient.
func (p Plan) validated(a method.Method) (Algorithm, error) {
	if p.ExtraDim != p.Validation.Dim() {
		return nil, fmt.Errorf("plan: %d extra coordinates, want %d for its validation", p.ExtraDim, p.Validation.Dim())
	}
	repeated := slices.ContainsFunc(p.Phases, func(f Phase) bool { return f.RoundsPerUser > 1 })
	return method.NewValidated(*p.Validation, repeated, a)
}

// preconditioned builds the method of the phases after the first, which is of moments.
func (p Plan) preconditioned() (*method.Precondition, error) {
	if len(p.Phases) < 2 || !p.Phases[0].Moments || p.Phases[0].Rounds != 1 || p.Phases[0].RoundsPerUser != 1 {
		return nil, fmt.Errorf("plan: precondition: want one round of moments first, and phases after it")
	}
	rest := p
	rest.Phases = p.Phases[1:]
	inner, err := rest.unscaled()
	if err != nil {
		return nil, err
	}
	return method.NewPrecondition(*p.Precondition, inner)
}

func (p Plan) unscaled() (method.Method, error) {
	stages, err := p.stages()
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if len(stages) == 1 {
		return stages[0].Begin(nil)
	}
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return method.NewRestarts(method.RestartsConfig{Dim: p.Dim, Set: set, Stages: stages})
}

// stages returns the configuration of every phase.
func (p Plan) stages() ([]method.Stage, error) {
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return nil, err
	}
	m, known := schedule.Of(p.Algorithm)
	switch {
	case !known:
		return nil, fmt.Errorf("algorithm: %q, want one of %s", p.Algorithm, strings.Join(schedule.Names(), ", "))
	case len(p.Phases) == 0 || (len(p.Phases) > 1 && !m.Restarts):
		return nil, fmt.Errorf("phases: %d do not make up %s", len(p.Phases), p.Algorithm)
	}
	out := make([]method.Stage, 0, len(p.Phases))
	for i, ph := range p.Phases {
		if ph.Moments {
			return nil, fmt.Errorf("phase %d: moments are of the first phase, with a precondition", i+1)
		}
		if m.Envelope != (ph.Smoothing > 0) {
			return nil, fmt.Errorf("phase %d: smoothing %v does not go with %s", i+1, ph.Smoothing, p.Algorithm)
		}
		if answers := map[bool]uint64{false: 1, true: ph.Rounds}[m.Interactive]; ph.RoundsPerUser != answers {
			return nil, fmt.Errorf("phase %d: a user of %s answers %d of %d rounds, not %d", i+1, p.Algorithm, answers, ph.Rounds, ph.RoundsPerUser)
		}
		one, err := p.stage(m, ph, set, i == len(p.Phases)-1)
		if err != nil {
			return nil, fmt.Errorf("phase %d: %w", i+1, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// stage returns the configuration of one phase, which goes on for ever if it is the last one of a continuous plan.
func (p Plan) stage(m schedule.Method, ph Phase, set convex.Set, last bool) (method.Stage, error) {
	endless := ""
	if last {
		endless = p.Continuous
	}
	switch {
	case endless == "" && m.Accelerated:
		return method.PAGDConfig{Dim: p.Dim, Set: set, Steps: ph.Rounds, V: ph.V, Mu: ph.Mu, Ridge: p.Ridge}, nil
	case endless == "":
		return method.PSGDConfig{Dim: p.Dim, Set: set, Steps: ph.Rounds, StepSize: ph.StepSize, Ridge: p.Ridge}, nil
	case (endless == schedule.Constant || endless == schedule.Decaying) && m.Name == schedule.PSGD:
		return method.StreamConfig{Dim: p.Dim, Set: set, Horizon: ph.Rounds, StepSize: ph.StepSize,
			Decaying: endless == schedule.Decaying, Ridge: p.Ridge}, nil
	case endless == schedule.Epochs && m.Accelerated:
		return method.EpochsConfig{Dim: p.Dim, Set: set, Horizon: ph.Rounds, V: ph.V, Smoothness: ph.Smoothness, Mu: ph.Mu, Ridge: p.Ridge}, nil
	}
	return nil, fmt.Errorf("continuous: %q does not go with %s, want %s or %s with psgd, %s with pagd", p.Continuous, p.Algorithm,
		schedule.Constant, schedule.Decaying, schedule.Epochs)
}
