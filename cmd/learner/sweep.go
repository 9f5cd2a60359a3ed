package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/schedule"
)

// A sweepReport is the JSON of `learner simulate --sweep-users`: excess risk over a known optimum against the number of
// users, for every method that applies, at equal users and equal privacy.
type sweepReport struct {
	Task    string      `json:"task"`
	Epsilon float64     `json:"epsilon"`
	Delta   float64     `json:"delta"`
	Repeats int         `json:"repeats"`
	Points  []sim.Point `json:"points"`
	Slopes  []sim.Slope `json:"slopes"`

	assuming string // see accounting.Trust.Assuming
}

// A sweepConfig holds what a sweep varies and how often it repeats.
type sweepConfig struct {
	users   []uint
	methods []string // all that apply if empty
	repeats int
	seed    uint64
	picture string // file name, or "" for none
}

// sweep measures on the synthetic population of the task's dimension and loss.
func sweep(ctx context.Context, job run.Job, c sweepConfig) (sweepReport, error) {
	if c.repeats < 2 {
		return sweepReport{}, cli.Usagef("--seeds %d: a sweep wants at least 2", c.repeats)
	}
	if job.Problem.Continuous != "" {
		return sweepReport{},
			cli.Usagef("--sweep-users: schedule.continuous has no end to measure at; try --set schedule.continuous=")
	}
	if job.Spec.Silo != nil || job.Spec.ByUser() {
		return sweepReport{},
			cli.Usagef(
				"--sweep-users: a sweep is of users of one event each, not of silos or people with several; --data simulates these")
	}
	if job.Problem.Practical != nil {
		return sweepReport{},
			cli.Usagef(
				"--sweep-users: a sweep measures methods against their bounds, of which a practical plan has none: want schedule.plan=proved")
	}
	config := sim.SeriesConfig{Problem: job.Problem, Repeats: c.repeats, Methods: c.methods,
		Synthetic: sim.SyntheticConfig{
			Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss, TruthNorm: sim.TruthNorm, Noise: 0.1, Ridge: job.Problem.Ridge,
			Seed: c.seed}}
	if len(c.methods) == 0 {
		config.Methods = slices.DeleteFunc(schedule.Names(), func(m string) bool { return job.Problem.Applies(m) != nil })
	}
	for _, m := range config.Methods {
		if err := job.Problem.Applies(m); err != nil {
			return sweepReport{}, cli.Usagef("--algorithms %s: %w", m, err)
		}
	}
	for _, n := range c.users {
		config.Users = append(config.Users, uint64(n))
	}
	points, err := sim.Series(ctx, config)
	if err != nil {
		return sweepReport{}, cli.Usage(err)
	}
	out := sweepReport{Task: job.Spec.Name, Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta,
		assuming: job.Assuming(), Repeats: c.repeats, Points: points,
		Slopes: sim.Slopes(points)}
	if c.picture == "" {
		return out, nil
	}
	return out, draw(out, c.picture)
}

// boundsDrawn is the most methods whose bounds are drawn beside what was measured.
const boundsDrawn = 2

func draw(r sweepReport, file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("excess risk after one private run (epsilon = %g, delta = %g)", r.Epsilon, r.Delta)
	p.X.Label.Text, p.Y.Label.Text = "users", "excess risk over the optimum"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	series := func(value func(sim.Point) float64) plotter.XYs {
		var xy plotter.XYs
		for _, point := range r.Points {
			xy = append(xy, plotter.XY{X: float64(point.Users), Y: value(point)})
		}
		return xy
	}
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
			line, dots, err := plotter.NewLinePoints(series(func(p sim.Point) float64 { return one.value(p.Risks[i]) }))
			if err != nil {
				return fmt.Errorf("draw: %w", err)
			}
			line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(k), vg.Points(1.5)
			dots.Color, dots.Shape = plotutil.Color(i), plotutil.Shape(k)
			p.Add(line, dots)
			p.Legend.Add(one.name, line, dots)
		}
	}
	p.Legend.Top, p.Legend.XOffs = true, -vg.Points(6)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Y.Max *= 3 // room for the legend
	if err := p.Save(7*vg.Inch, 4.5*vg.Inch, file); err != nil {
		return cli.Usagef("--plot: %w", err)
	}
	return nil
}

func (r sweepReport) print(w io.Writer) error {
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
		of := fmt.Sprintf("the theorem: %.2f for privacy, %.2f for sampling", s.Privacy, s.Sampling)
		if s.Sampling == 0 {
			of = fmt.Sprintf("the theorem, on the records: %.2f for privacy", s.Privacy)
		}
		if _, err := fmt.Fprintf(w, "slope      %-22s  %18.2f  (%s)\n", s.Method, s.Fitted, of); err != nil {
			return err
		}
	}
	return nil
}
