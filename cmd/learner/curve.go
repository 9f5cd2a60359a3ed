package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A spot is one point of a learning curve: what models do on the test data after that many reports, over the seeds.
type spot struct {
	Reports uint64  `json:"reports"` // in all rounds so far; the users, where each sends one
	Mean    float64 `json:"mean"`
	SD      float64 `json:"sd"`
}

// A curve holds the values of the task's measure during one run, and the number of reports at each.
type curve struct {
	reports []uint64
	values  []float64
}

// A measure is a score that curves are drawn of.
type measure struct {
	name  string // of its field
	label string
	of    func(simulated) *float64
	falls bool // better models have less of it
}

// measure returns the score plotted for the task's loss.
func (s *simulation) measure() measure {
	loss := convex.TraitsOf(s.job.Spec.Model.Loss)
	switch {
	case loss.Labels.Classes():
		return measure{"test_accuracy", "test accuracy", func(s simulated) *float64 { return s.TestAccuracy }, false}
	case loss.Error == convex.Pinball:
		return measure{"test_quantile_loss", "quantile loss on test data",
			func(s simulated) *float64 { return s.TestQuantile }, true}
	case loss.Error == convex.MeanAbsolute:
		return measure{"test_mean_absolute_error", "test error (mean absolute)",
			func(s simulated) *float64 { return s.TestAbsolute }, true}
	}
	return measure{"test_error", "test error (root mean square)", func(s simulated) *float64 { return s.TestError }, true}
}

// curveSpots limits how often a run is scored.
const curveSpots = 30

// observer scores every few rounds and the last.
func (s *simulation) observer(to *curve, plan *wire.Plan) func(sim.Round) {
	every := (manifest.Planned(plan) + curveSpots - 1) / curveSpots
	var reports uint64
	measure := s.measure()
	return func(r sim.Round) {
		reports += r.Users
		if r.Step%every != 0 && r.Step != r.Steps {
			return
		}
		var result simulated
		if result.test(s, r.Model()) != nil {
			return // the final score says so
		}
		to.reports, to.values = append(to.reports, reports), append(to.values, *measure.of(result))
	}
}

// spots joins the curves of one configuration.
func spots(curves []curve) []spot {
	var out []spot
	for i, reports := range curves[0].reports {
		var values []float64
		for _, c := range curves {
			values = append(values, c.values[i])
		}
		one := spot{Reports: reports, Mean: stat.Mean(values, nil)}
		if len(values) > 1 {
			one.SD = stat.StdDev(values, nil)
		}
		out = append(out, one)
	}
	return out
}

// draw writes the curves, with a band of one standard deviation around those of several seeds; baselines of other
// numbers of reports are levels.
func (r simulateReport) draw(file string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: %s, epsilon = %s, delta = %g", r.Task, r.Algorithm, cli.Upper(r.Epsilon, 3), r.Delta)
	p.X.Label.Text, p.Y.Label.Text, p.Legend.Top = "reports", r.shown.label, r.shown.falls
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.XOffs = -vg.Points(6)
	p.Add(plotter.NewGrid())
	if err := addCurve(p, 0, "private", r.Curve); err != nil {
		return err
	}
	last := r.Curve[len(r.Curve)-1].Reports
	for i, b := range r.Baselines {
		points := b.Curve
		if b.Mean == nil {
			continue
		}
		if len(points) == 0 || b.passes {
			value := r.shown.of(*b.Mean)
			points = []spot{{Mean: *value}, {Reports: last, Mean: *value}}
		}
		if err := addCurve(p, i+1, b.Name, points); err != nil {
			return err
		}
	}
	return savePlots(file, p)
}

func addCurve(p *plot.Plot, i int, name string, points []spot) error {
	var middle, band plotter.XYs
	for _, s := range points {
		middle = append(middle, plotter.XY{X: float64(s.Reports), Y: s.Mean})
		band = append(band, plotter.XY{X: float64(s.Reports), Y: s.Mean + s.SD})
	}
	for k := len(points) - 1; k >= 0; k-- {
		band = append(band, plotter.XY{X: float64(points[k].Reports), Y: points[k].Mean - points[k].SD})
	}
	line, err := plotter.NewLine(middle)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i), vg.Points(1.5)
	area, err := plotter.NewPolygon(band)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	r, g, b, _ := line.Color.RGBA()
	area.Color, area.LineStyle.Width = color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 50}, 0
	p.Add(area, line)
	p.Legend.Add(name, line)
	return nil
}
