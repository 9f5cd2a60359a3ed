package statedir

import (
	"fmt"

	"github.com/panlearn/panlearn/stream/manifest"
)

// Adversaries says against whom the spent epsilon holds. It is that of the worst adversary that the trust model knows.
type Adversaries struct {
	Trust           string   `json:"trust"`
	EpsilonLearner  float64  `json:"epsilon_learner"`  // against the learner alone, and everybody downstream of it
	EpsilonIntruder *float64 `json:"epsilon_intruder"` // against one who also looks into the stage once; null: no claim
}

// adversaries splits what the user who is charged most has spent. Every round has the mechanism of its phase, and the cohort of
// the phase or, in the last, a larger one, which costs less.
func (v View) adversaries(spent float64) (Adversaries, error) {
	trust, err := manifest.Trust(v.Task.Plan.Trust)
	if err != nil {
		return Adversaries{}, err
	}
	out := Adversaries{Trust: trust.String(), EpsilonLearner: spent}
	if !trust.HasFloors() {
		return out, nil
	}
	out.EpsilonIntruder = &spent
	if spent == 0 {
		return out, nil
	}
	p := v.Task.Plan
	honest, err := manifest.HonestFraction(p)
	if err != nil {
		return Adversaries{}, fmt.Errorf("stored %w", err)
	}
	worst := 0.0
	for i := range p.Phases {
		release, err := manifest.Costliest(p, i).Release(honest)
		if err != nil {
			return Adversaries{}, fmt.Errorf("stored plan: %w", err)
		}
		g, err := release.Epsilon(p.Delta)
		if err != nil {
			return Adversaries{}, fmt.Errorf("stored plan: %w", err)
		}
		worst = max(worst, g.Learner)
	}
	out.EpsilonLearner = min(worst, spent)
	return out, nil
}
