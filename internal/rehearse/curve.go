package rehearse

import (
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/picture"
	"github.com/panlearn/panlearn/internal/sim"
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

// curveSpots limits how often a run is scored.
const curveSpots = 30

// observer scores every few rounds and the last.
func (s *Rehearsal) observer(to *curve, plan *wire.Plan) func(sim.Round) {
	every := (manifest.Planned(plan) + curveSpots - 1) / curveSpots
	var reports uint64
	measure := MeasureOf(s.spec.Model.Loss)
	return func(r sim.Round) {
		reports += r.Users
		if r.Step%every != 0 && r.Step != r.Steps {
			return
		}
		result, err := s.predictor(r.Model()).EvaluateExamples(s.Test)
		if err != nil {
			return // the final score says so
		}
		to.reports, to.values = append(to.reports, reports), append(to.values, measure.Of(result))
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

// Draw draws the curves of the runs into a file, with a band of one standard deviation around the curves of several
// seeds; baselines of other numbers of reports are levels. Of a task without an end it draws stretches of its rows.
func (r report) Draw(file string) error {
	if r.Online != nil {
		return r.drawStream(file)
	}
	p := picture.Panel{Title: fmt.Sprintf("%s: %s, epsilon = %s, delta = %g", r.Task, r.Algorithm, cli.Upper(r.Epsilon, 3),
		r.Delta), X: "reports", Y: r.shown.Label, Grid: true, Legend: corner(r.shown.Falls),
		Lines: []picture.Line{curveOf(0, "private", r.Curve)}}
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
		p.Lines = append(p.Lines, curveOf(i+1, b.Name, points))
	}
	return picture.Write(file, p)
}

// corner returns where a legend is out of the way of curves that fall, or rise.
func corner(falls bool) picture.Corner {
	if falls {
		return picture.TopRight
	}
	return picture.BottomRight
}

func curveOf(i int, name string, points []spot) picture.Line {
	out := picture.Line{Name: name, Color: i, Dashes: i}
	for _, s := range points {
		out.Points = append(out.Points, picture.Point{X: float64(s.Reports), Y: s.Mean, SD: s.SD})
	}
	return out
}
