package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// settings returns the short list: keys that mean something for the task, one at a time.
func (c *comparison) settings(base run.Job) ([]setting, error) {
	var out []setting
	mapped, err := c.Rows.Map(base.Spec)
	if err != nil {
		return nil, err
	}
	public, data := mapped.(rehearse.Public)
	rows := table(public.Rows)
	if data { // rows of a schema have no interactions, by construction
		if s, ok := crosses(base.Spec, base.Features.Dim()); ok {
			out = append(out, s)
		}
		out = append(out, rows.columns(base)...)
		if s, ok := rows.fourier(base, c.First); ok {
			out = append(out, s)
		}
	}
	out = append(out, passes(base))
	out = append(out, ridge(base)...)
	x := base.Features.Longest()
	bounds := []float64{x / 2, x / 4}
	if data {
		bounds = []float64{rows.norm(0.99, base.Spec.Intercept), rows.norm(0.5, base.Spec.Intercept)}
	}
	if base.Spec.NormBound > 0 {
		out = append(out, one("norm_bound", 0)) // what the declaration allows
	}
	for _, b := range bounds {
		if b = tidy(b); b > 0 && b < 0.9*x {
			out = append(out, one("norm_bound", b))
		}
	}
	clip, err := c.clip(base, mapped)
	if err != nil {
		return nil, err
	}
	for _, factor := range [...]float64{0.5, 2} {
		if l := tidy(factor * clip); base.Problem.Practical != nil || l < base.Problem.Lipschitz {
			out = append(out, one("model.clip_norm", l))
		}
	}
	return append(out, users(base)...), nil
}

// clip returns the norm that gradients of the task are clipped to: what is declared, or what the first cohort
// of a practical plan leads to.
func (c *comparison) clip(base run.Job, rows rehearse.Source) (float64, error) {
	if l := base.Spec.Model.ClipNorm; l > 0 {
		return min(l, base.Problem.Lipschitz), nil
	}
	again, err := run.NewJob(base.Spec)
	if err != nil {
		return 0, err
	}
	config := simulated(again, c.Most)
	sample, err := rows.Draw(c.First, int(manifest.Users(config.Plan)), 1)
	if err != nil {
		return 0, err
	}
	config.Examples, config.Seed = sample.Rows(), c.First
	result, err := sim.Run(context.Background(), config)
	if err != nil {
		return 0, err
	}
	if result.Learned == nil {
		return 0, fmt.Errorf("the first cohort of the task taught nothing")
	}
	return result.Learned.Frame.Clip, nil
}

// users returns settings with other numbers of rounds, and of users of the first cohort.
func users(base run.Job) (out []setting) {
	first := manifest.Gradients(base.Plan)
	var rounds, answer uint64 // of gradients, and the users who answer these
	for _, f := range base.Plan.Phases {
		if f.Statistic == wire.Statistic_STATISTIC_GRADIENT {
			rounds, answer = rounds+f.Rounds, answer+f.Users
		}
	}
	if manifest.Endless(base.Plan) {
		return nil
	}
	for _, share := range [...]uint64{2, 4} {
		if t := rounds / share; t > 0 {
			out = append(out, one("schedule.rounds.max", t))
		}
	}
	if base.Problem.Practical == nil {
		return out
	}
	if m := answer / (2 * rounds); first.RoundsPerUser == 1 && m >= 1 { // twice as many rounds
		out = append(out, one("schedule.cohort", m))
	}
	for _, factor := range [...]float64{0.5, 2} {
		if n := math.Round(factor * float64(base.Plan.Phases[0].Users)); n >= 1 {
			out = append(out, one("schedule.first_cohort", n))
		}
	}
	return out
}
