package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/internal/picture"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/schedule"
)

// A SweepReport is the JSON of `learner simulate --sweep-users`: excess risk over a known optimum against the number of
// users, for every method that applies, at equal users and equal privacy.
type SweepReport struct {
	Task    string      `json:"task"`
	Epsilon float64     `json:"epsilon"`
	Delta   float64     `json:"delta"`
	Repeats int         `json:"repeats"`
	Points  []sim.Point `json:"points"`
	Slopes  []sim.Slope `json:"slopes"`

	assuming string // see accounting.Trust.Assuming
}

// A SweepConfig holds what a sweep varies and how often it repeats.
type SweepConfig struct {
	Users   []uint
	Methods []string // all that apply if empty
	Repeats int      // at least 2
	Seed    uint64
}

// Sweep measures on the synthetic population of the task's dimension and loss.
func Sweep(ctx context.Context, job run.Job, c SweepConfig) (SweepReport, error) {
	if c.Repeats < 2 {
		return SweepReport{}, fmt.Errorf("--seeds %d: a sweep needs at least 2", c.Repeats)
	}
	if job.Problem.Continuous != "" {
		return SweepReport{},
			errors.New("--sweep-users: schedule.continuous has no end to measure at; try --set schedule.continuous=")
	}
	if job.Spec.Silo != nil || job.Spec.Privacy.ByUser() {
		return SweepReport{},
			errors.New("--sweep-users: a sweep is of users of one event each, not of silos or people with several; --data simulates these")
	}
	if job.Problem.Practical != nil {
		return SweepReport{},
			errors.New("--sweep-users: a sweep measures methods against their bounds, of which a practical plan has none: want schedule.plan=proved")
	}
	config := sim.SeriesConfig{Problem: job.Problem, Repeats: c.Repeats, Methods: c.Methods,
		Synthetic: sim.SyntheticConfig{
			Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss, TruthNorm: sim.TruthNorm, Noise: 0.1, Ridge: job.Problem.Ridge,
			Seed: c.Seed}}
	if len(c.Methods) == 0 {
		config.Methods = slices.DeleteFunc(schedule.Names(), func(m string) bool { return job.Problem.Applies(m) != nil })
	}
	for _, m := range config.Methods {
		if err := job.Problem.Applies(m); err != nil {
			return SweepReport{}, fmt.Errorf("--algorithms %s: %w", m, err)
		}
	}
	for _, n := range c.Users {
		config.Users = append(config.Users, uint64(n))
	}
	points, err := sim.Series(ctx, config)
	if err != nil {
		return SweepReport{}, err
	}
	return SweepReport{Task: job.Spec.Name, Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta,
		assuming: job.Assuming(), Repeats: c.Repeats, Points: points, Slopes: sim.Slopes(points, job.Problem.Ridge > 0)}, nil
}

// boundsDrawn is the largest number of methods for which bounds are drawn beside the measurements.
const boundsDrawn = 2

// Draw draws the risks over the users into a file.
func (r SweepReport) Draw(file string) error {
	p := picture.Panel{Title: fmt.Sprintf("excess risk after one private run (epsilon = %g, delta = %g)", r.Epsilon,
		r.Delta), X: "users", Y: "excess risk over the optimum", LogX: true, LogY: true, Legend: picture.TopRight, Room: 3}
	for i, m := range r.Slopes {
		slope := ""
		if len(r.Points) > 1 {
			slope = fmt.Sprintf(" (slope %.2f)", m.Fitted)
		}
		for k, one := range [...]struct {
			name  string
			value func(sim.Risk) float64
		}{
			{m.Method + slope, func(r sim.Risk) float64 { return r.Mean }},
			{m.Method + " without noise", func(r sim.Risk) float64 { return r.NonPrivate }},
			{m.Method + ", bound", func(r sim.Risk) float64 { return r.Bound }},
		} {
			if k == 2 && (len(r.Slopes) > boundsDrawn || r.Points[0].Risks[i].Bound == 0) {
				continue
			}
			line := picture.Line{Name: one.name, Color: i, Dashes: k, Dots: true, Shape: k}
			for _, point := range r.Points {
				line.Points = append(line.Points, picture.Point{X: float64(point.Users), Y: one.value(point.Risks[i])})
			}
			p.Lines = append(p.Lines, line)
		}
	}
	return picture.Write(file, p)
}

// Print writes the table for people.
func (r SweepReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "excess risk over the optimum, mean of %d runs (standard error), epsilon %g, delta %g%s\n", r.Repeats,
		r.Epsilon, r.Delta, r.assuming)
	fmt.Fprintf(w, "%9s  %-22s  %18s  %12s  %12s\n", "users", "method", "excess risk", "no noise", "bound")
	for _, p := range r.Points {
		for _, one := range p.Risks {
			bound := fmt.Sprintf("%.5f", one.Bound)
			if one.Bound == 0 {
				bound = "on records" // not about what is measured
			}
			fmt.Fprintf(w, "%9d  %-22s  %8.5f (%.5f)  %12.5f  %12s\n", p.Users, one.Method, one.Mean, one.StdErr, one.NonPrivate,
				bound)
		}
	}
	if len(r.Points) < 2 {
		_, err := fmt.Fprintln(w, "slope      none: it takes two numbers of users")
		return err
	}
	for _, s := range r.Slopes {
		of := fmt.Sprintf("the bound: %.2f for privacy, %.2f for sampling", s.Privacy, s.Sampling)
		if s.Sampling == 0 {
			of = fmt.Sprintf("the bound, on the records: %.2f for privacy", s.Privacy)
		}
		if _, err := fmt.Fprintf(w, "slope      %-22s  %18.2f  (%s)\n", s.Method, s.Fitted, of); err != nil {
			return err
		}
	}
	return nil
}
