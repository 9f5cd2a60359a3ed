package main

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
)

// draw writes a reliability diagram, a line for each model, if a file is named.
func (e evalConfig) draw(names []string, results ...released.Evaluation) error {
	if e.picture == "" {
		return nil
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "what probabilities are worth", "predicted probability, mean of a bin",
		"share that occurred"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	perfect := plotter.NewFunction(func(x float64) float64 { return x })
	perfect.Color, perfect.Dashes = plotutil.Color(2), plotutil.Dashes(2)
	p.Add(perfect)
	p.Legend.Add("as said", perfect)
	for i, r := range results {
		if r.OfClasses == nil || r.CalibrationError == nil {
			return cli.Usagef("--plot: draws what probabilities are worth, and the loss of %s has none", e.models[i])
		}
		var points plotter.XYs
		for _, bin := range r.Reliability {
			points = append(points, plotter.XY{X: bin.Probability, Y: bin.Occurred})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		line.Color, line.Dashes, line.Width, dots.Color = plotutil.Color(i), plotutil.Dashes(i), vg.Points(1.5),
			plotutil.Color(i)
		p.Add(line, dots)
		p.Legend.Add(fmt.Sprintf("%s: calibration error %.4f", names[i], *r.CalibrationError), line, dots)
	}
	return savePlots(e.picture, p)
}
