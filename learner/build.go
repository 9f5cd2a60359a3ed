package learner

import (
	"fmt"
)

// Values of Plan.Continuous.
const (
	ContinuousConstant = "constant" // PSGD with a constant step and a window that forgets
	ContinuousDecaying = "decaying" // PSGD with steps that fall like 1/sqrt(t)
	ContinuousEpochs   = "epochs"   // PAGD anew in epochs of doubling length, up to the planned Rounds
)

// New builds the plan's method at its start, theta = 0.
func New(p Plan) (Algorithm, error) {
	set, err := p.Set.New(p.Dim)
	if err != nil {
		return nil, err
	}
	if len(p.Phases) == 0 {
		return nil, fmt.Errorf("plan: no phases")
	}
	switch p.Algorithm {
	case MethodPSGD:
		return NewPSGD(PSGDConfig{Dim: p.Dim, Set: set, Steps: p.Rounds(), StepSize: p.Phases[0].StepSize})
	case MethodPAGD:
		return NewPAGD(PAGDConfig{Dim: p.Dim, Set: set, Steps: p.Rounds(), V: p.Phases[0].V})
	}
	return nil, fmt.Errorf("algorithm: %q, want %s or %s", p.Algorithm, MethodPSGD, MethodPAGD)
}
