package manifest

import (
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream/wire"
)

// MaxProxSteps bounds the steps of one answer: each takes the work of a gradient of all rows of a block.
const MaxProxSteps = 1 << 14

// validateProx checks a phase with reports of minimisers against the rest of its plan, and refuses such reports in any
// other phase.
func validateProx(plan *wire.Plan, f *wire.Phase) error {
	x := f.GetProx()
	if f.Mechanism.Minimizer != (x != nil) {
		return fmt.Errorf("minimizer %t: want it in the phases of prox, and in no other", f.Mechanism.Minimizer)
	}
	if first := Gradients(plan); (first.GetProx() != nil) != (x != nil) {
		return errors.New("prox: want it in all phases, or in none")
	}
	if x == nil {
		return nil
	}
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch norm := plan.ClipNorm / x.Weight; {
	case plan.Silos == 0 || plan.Unit != wire.Unit_UNIT_EVENT || plan.Practical != nil:
		return errors.New("prox: want reports of organisations about rows, in a proved plan")
	case !positive(x.Weight):
		return fmt.Errorf("prox: weight %v: want a positive finite number", x.Weight)
	case !(x.StepSize > 0 && x.StepSize*x.Weight <= 1):
		return fmt.Errorf("prox: step_size %v: want a positive number of at most 1/weight", x.StepSize)
	case x.Steps == 0 || x.Steps > MaxProxSteps:
		return fmt.Errorf("prox: steps %d: want 1 to %d", x.Steps, MaxProxSteps)
	case f.Mechanism.ClipNorm != norm:
		return fmt.Errorf("prox: clip_norm %v of the mechanism: want that of a gradient over weight, %v",
			f.Mechanism.ClipNorm, norm)
	case f.Mechanism.Scores != 0:
		return fmt.Errorf("prox: scores %d: want 0, a minimiser is reported alone", f.Mechanism.Scores)
	case f.Smoothing != 0 || plan.Ridge != 0 || Endless(plan):
		return fmt.Errorf("prox: smoothing %v, ridge %v, continuous %v: want none of them", f.Smoothing, plan.Ridge,
			plan.Continuous)
	}
	return nil
}
