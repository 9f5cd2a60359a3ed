package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/internal/sim"
)

// A sweepReport is the JSON of `learner simulate --sweep-users`: excess risk over a known optimum against the number of
// users, for both methods at equal users and equal privacy.
type sweepReport struct {
	Task    string      `json:"task"`
	Epsilon float64     `json:"epsilon"`
	Delta   float64     `json:"delta"`
	Repeats int         `json:"repeats"`
	Points  []sim.Point `json:"points"`
	// Slopes of log(excess risk) over log(users), least squares.
	SlopePSGD float64 `json:"slope_psgd"`
	SlopePAGD float64 `json:"slope_pagd"`
}

// sweep measures on the synthetic population of the task's dimension and loss, and draws if picture is a file name.
func sweep(ctx context.Context, job pipeline.Job, users []uint, repeats int, seed uint64, picture string) (sweepReport, error) {
	if repeats < 2 {
		return sweepReport{}, cli.Usagef("--seeds %d: a sweep wants at least 2", repeats)
	}
	config := sim.SeriesConfig{Problem: job.Problem, Repeats: repeats, Synthetic: sim.SyntheticConfig{
		Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss, TruthNorm: pipeline.QuickstartTruthNorm, Noise: 0.1, Seed: seed}}
	for _, n := range users {
		config.Users = append(config.Users, uint64(n))
	}
	points, err := sim.Series(ctx, config)
	if err != nil {
		return sweepReport{}, cli.Usage(err)
	}
	out := sweepReport{Task: job.Spec.Name, Epsilon: job.Problem.Epsilon, Delta: job.Problem.Delta, Repeats: repeats, Points: points,
		SlopePSGD: slope(points, func(p sim.Point) float64 { return p.PSGD.Mean }),
		SlopePAGD: slope(points, func(p sim.Point) float64 { return p.PAGD.Mean })}
	if picture == "" {
		return out, nil
	}
	return out, draw(out, picture)
}

func slope(points []sim.Point, risk func(sim.Point) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(float64(p.Users)), math.Log(risk(p))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
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
	if err := plotutil.AddLinePoints(p,
		"PSGD", series(func(p sim.Point) float64 { return p.PSGD.Mean }),
		"PAGD", series(func(p sim.Point) float64 { return p.PAGD.Mean }),
		"PSGD without privacy", series(func(p sim.Point) float64 { return p.PSGD.NonPrivate }),
		"PAGD without privacy", series(func(p sim.Point) float64 { return p.PAGD.NonPrivate }),
	); err != nil {
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
	fmt.Fprintf(w, "%9s  %18s  %18s  %12s  %12s\n", "users", "PSGD", "PAGD", "PSGD bound", "PAGD bound")
	for _, p := range r.Points {
		fmt.Fprintf(w, "%9d  %8.5f (%.5f)  %8.5f (%.5f)  %12.5f  %12.5f\n", p.Users, p.PSGD.Mean, p.PSGD.StdErr, p.PAGD.Mean, p.PAGD.StdErr,
			p.PSGD.Bound, p.PAGD.Bound)
	}
	_, err := fmt.Fprintf(w, "slope      %18.2f  %18.2f\n", r.SlopePSGD, r.SlopePAGD)
	return err
}
