package tune

import (
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream/manifest"
)

// settings is the short list: keys that mean something for the task, one at a time.
func (c *Comparison) settings(base run.Job) ([]Setting, error) {
	var out []Setting
	mapped, err := c.Rows.Map(base.Spec)
	if err != nil {
		return nil, err
	}
	rows, data := mapped.(public)
	if data { // rows of a schema have no interactions, by construction
		if s, ok := crosses(base.Spec, base.Features.Dim()); ok {
			out = append(out, s)
		}
	}
	x := base.Features.Longest()
	bounds := []float64{x / 2, x / 4}
	if data {
		bounds = []float64{rows.norm(0.99), rows.norm(0.5)}
	}
	if base.Spec.NormBound > 0 {
		out = append(out, one("norm_bound", 0)) // what the declaration allows
	}
	for _, b := range bounds {
		if b = tidy(b); b > 0 && b < 0.9*x {
			out = append(out, one("norm_bound", b))
		}
	}
	clip := min(base.Spec.Model.ClipNorm, base.Problem.Lipschitz)
	for _, factor := range [...]float64{0.5, 2} {
		if l := tidy(factor * clip); l < base.Problem.Lipschitz {
			out = append(out, one("model.clip_norm", l))
		}
	}
	rounds := manifest.Planned(base.Plan)
	for _, share := range [...]uint64{2, 4} {
		if t := rounds / share; t > 0 && !manifest.Endless(base.Plan) {
			out = append(out, one("schedule.rounds.max", t))
		}
	}
	return out, nil
}
