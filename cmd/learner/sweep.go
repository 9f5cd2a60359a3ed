package main

import (
	"context"
	"fmt"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
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
}

// sweep measures on the synthetic population of the task's dimension and loss, and draws if picture is a file name.
func sweep(ctx context.Context, job pipeline.Job, users []uint, repeats int, seed uint64, picture string) (sweepReport, error) {
	if repeats < 2 {
		return sweepReport{}, cli.Usagef("--seeds %d: a sweep wants at least 2", repeats)
	}
	if job.Problem.Continuous != "" {
		return sweepReport{}, cli.Usagef("--sweep-users: schedule.continuous has no end to measure at; try --set schedule.continuous=")
	}
	config := sim.SeriesConfig{Problem: job.Problem, Repeats: repeats, Synthetic: sim.SyntheticConfig{
		Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss, TruthNorm: pipeline.QuickstartTruthNorm, Noise: 0.1, Ridge: job.Problem.Ridge, Seed: seed}}
	for _, m := range learner.Methods() {
		if job.Problem.Applies(m) == nil {
			config.Methods = append(config.Methods, m)
		}
	}
	for _, n := range users {
		config.Users = append(config.Users, uint64(n))
	}
	points, err := sim.Series(ctx, config)
	if err != nil {
		return sweepReport{}, cli.Usage(err)
	}
	out := sweepReport{Task: job.Spec.Name, Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta, Repeats: repeats, Points: points,
		Slopes: sim.Slopes(points)}
	if picture == "" {
		return out, nil
	}
	return out, draw(out, picture)
}

func draw(r sweepReport, file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("excess risk after one private pass (epsilon = %g, delta = %g)", r.Epsilon, r.Delta)
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
	var lines []any
	for i, s := range r.Slopes {
		lines = append(lines, s.Method, series(func(p sim.Point) float64 { return p.Risks[i].Mean }),
			s.Method+" without privacy", series(func(p sim.Point) float64 { return p.Risks[i].NonPrivate }))
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	p.Legend.Top = true
	if err := p.Save(7*vg.Inch, 4.5*vg.Inch, file); err != nil {
		return cli.Usagef("--plot: %w", err)
	}
	return nil
}

func (r sweepReport) print(w io.Writer) error {
	fmt.Fprintf(w, "excess risk over the optimum, mean of %d runs (standard error), epsilon %g, delta %g\n", r.Repeats, r.Epsilon, r.Delta)
	fmt.Fprintf(w, "%9s  %-22s  %18s  %12s  %12s\n", "users", "method", "excess risk", "no noise", "bound")
	for _, p := range r.Points {
		for _, one := range p.Risks {
			fmt.Fprintf(w, "%9d  %-22s  %8.5f (%.5f)  %12.5f  %12.5f\n", p.Users, one.Method, one.Mean, one.StdErr, one.NonPrivate, one.Bound)
		}
	}
	for _, s := range r.Slopes {
		if _, err := fmt.Fprintf(w, "slope      %-22s  %18.2f  (the theorem: %.2f for privacy, %.2f for sampling)\n", s.Method, s.Fitted, s.Privacy, s.Sampling); err != nil {
			return err
		}
	}
	return nil
}
