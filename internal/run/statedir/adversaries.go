package statedir

import (
	"fmt"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Adversaries describes whom the spent epsilon protects, and against whom. The epsilon is that against the worst
// adversary of the trust model.
type Adversaries struct {
	wording.Kind
	Unit           string              `json:"unit"` // what is protected, in words
	Trust          string              `json:"trust"`
	HonestFraction accounting.Fraction `json:"honest_fraction"` // share of every cohort on whose noise the cost relies
	// it follows from a seed: the epsilons are what a run without one would spend
	NoiseKnown bool `json:"noise_known,omitempty"`
	// against the learner alone, and everybody downstream of it
	EpsilonLearner float64 `json:"epsilon_learner"`
	// against one who also looks into the stage once; null: no claim
	EpsilonIntruder *float64 `json:"epsilon_intruder"`
	// against one of two operators, and the learner; only under trust split
	EpsilonOperator *float64 `json:"epsilon_operator,omitempty"`
	// one party runs both operators, as the task declares; the epsilon holds for two
	OneOperator bool `json:"one_operator,omitempty"`
}

// Assuming describes the assumptions behind the epsilons, see accounting.Trust.Assuming.
func (a Adversaries) Assuming() string {
	assuming := a.Kind.Assuming(a.Trust, a.HonestFraction)
	if a.OneOperator {
		assuming += wording.OneOperator
	}
	return assuming
}

// adversaries splits what the unit that is charged most has spent. Every round has the mechanism of its phase, and the
// cohort of the phase or, in the last, a larger one, which costs less.
func (v View) adversaries(spent float64) (Adversaries, error) {
	trust, err := manifest.Trust(v.Task.Plan.Trust)
	if err != nil {
		return Adversaries{}, err
	}
	p := v.Task.Plan
	honest, err := manifest.HonestFraction(p)
	if err != nil {
		return Adversaries{}, fmt.Errorf("stored %w", err)
	}
	kind := wording.Of(p)
	out := Adversaries{OneOperator: v.Spec != nil && v.Spec.Privacy.OneOperator(), Kind: kind, Unit: kind.Protected(), Trust: trust.String(), HonestFraction: honest,
		NoiseKnown: v.noiseKnown, EpsilonLearner: spent}
	switch {
	case trust.HasIntruder():
		out.EpsilonIntruder = &spent
	case trust.HasOperators():
		out.EpsilonOperator = &spent
	default:
		return out, nil
	}
	if spent == 0 {
		return out, nil
	}
	worst := 0.0
	for i := range p.Phases {
		releases, err := manifest.Costliest(p, i).Releases(honest)
		if err != nil {
			return Adversaries{}, fmt.Errorf("stored plan: %w", err)
		}
		g, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{releases}, p.Delta)
		if err != nil {
			return Adversaries{}, fmt.Errorf("stored plan: %w", err)
		}
		worst = max(worst, g.Learner)
	}
	out.EpsilonLearner = min(worst, spent)
	return out, nil
}
