package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Baselines beside those of package planning.
const (
	baselineExact     = "exact"
	baselineConverged = "converged"
)

var allBaselines = []string{planning.BaselineCentral, planning.BaselineLocal, planning.BaselineMultiPass, baselineExact, baselineConverged}

func baselineNames(given []string) ([]string, error) {
	if len(given) == 1 && given[0] == "all" {
		return allBaselines, nil
	}
	for _, name := range given {
		if !slices.Contains(allBaselines, name) {
			return nil, cli.Usagef("--baselines %q: want all, or some of %s", name, strings.Join(allBaselines, ","))
		}
	}
	return given, nil
}

// A baseline is the outcome of another way to spend the same budget on the same users. What cannot be simulated has a reason.
type baseline struct {
	Name      string      `json:"name"`
	Mechanism string      `json:"mechanism"`
	Algorithm string      `json:"algorithm,omitempty"`
	Rounds    uint64      `json:"rounds,omitempty"`
	Cohort    uint64      `json:"cohort,omitempty"`
	NoiseStd  float64     `json:"noise_std"` // of one coordinate of a round's mean in the first phase, in units of the gradient
	Runs      []simulated `json:"runs,omitempty"`
	Mean      *simulated  `json:"mean,omitempty"`
	SD        *simulated  `json:"sd,omitempty"`
	Curve     []spot      `json:"curve,omitempty"`
	Reason    string      `json:"reason,omitempty"`

	passes bool // everybody answers every round
}

func (s *simulation) baseline(ctx context.Context, t trials) baseline {
	out := baseline{Name: t.name}
	var err error
	switch t.name {
	case baselineConverged:
		err = s.converged(ctx, t, &out)
	case baselineExact:
		out.Mechanism = "no noise"
		err = s.fill(ctx, t, &out, sim.Config{Plan: s.job.Plan, Exact: true})
	default:
		err = s.sameBudget(ctx, t, &out)
	}
	if err != nil {
		out.Reason = err.Error()
	}
	return out
}

// sameBudget simulates the task's own method, or for several passes gradient descent, with the noise of another trust model.
func (s *simulation) sameBudget(ctx context.Context, t trials, out *baseline) error {
	if s.blocks != nil {
		return errors.New("not yet for reports about blocks of rows")
	}
	methods := []string{s.job.Plan.Algorithm}
	if out.Name == planning.BaselineMultiPass {
		methods = []string{schedule.PGD, schedule.PGDEnvelope}
	}
	var err error
	for _, m := range methods {
		var b planning.BaselinePlan
		if b, err = s.job.Planner.BaselinePlan(s.job.Problem, out.Name, m); err == nil {
			first := manifest.Gradients(b.Plan)
			out.Mechanism, out.NoiseStd = b.Mechanism, b.NoiseStd(slices.Index(b.Plan.Phases, first), first.Cohort)
			return s.fill(ctx, t, out, sim.Config{Plan: b.Plan, NoiseStd: b.NoiseStd})
		}
	}
	return err
}

func (s *simulation) fill(ctx context.Context, t trials, out *baseline, c sim.Config) error {
	r, err := s.series(ctx, t, c)
	if err != nil {
		return err
	}
	mean := meanOf(r.runs)
	first := manifest.Gradients(c.Plan)
	out.Algorithm, out.Rounds, out.Cohort, out.passes = c.Plan.Algorithm, r.rounds, first.Cohort, first.RoundsPerUser > 1
	out.Runs, out.Mean, out.SD, out.Curve = r.runs, &mean, deviation(r.runs), r.curve
	return nil
}

// converged is what all training data together give.
func (s *simulation) converged(ctx context.Context, t trials, out *baseline) error {
	set, err := s.job.Spec.Set(s.job.Problem.Dim)
	if err != nil {
		return err
	}
	out.Mechanism = "no noise, no clipping"
	theta, err := sim.Converge(ctx, sim.ConvergeConfig{Loss: s.job.Loss, Set: set, Ridge: s.job.Problem.Ridge, Dim: s.job.Problem.Dim,
		Examples: s.train})
	if err != nil {
		return err
	}
	one, err := s.score(theta)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.progress, "%s: %s\n", out.Name, one)
	out.Algorithm, out.Runs, out.Mean = "fista", []simulated{one}, &one
	return nil
}

func (b baseline) print(w io.Writer) error {
	var err error
	if b.Reason != "" {
		_, err = fmt.Fprintf(w, "%-13s none: %s\n", b.Name, b.Reason)
	} else {
		_, err = fmt.Fprintf(w, "%-13s %s%s (%s)\n", b.Name, *b.Mean, b.SD.spread(len(b.Runs)), b.Mechanism)
	}
	return err
}
