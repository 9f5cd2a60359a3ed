package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/picture"
	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/stream/manifest"
)

// An Online is a learner without privacy on the rows of a task without an end.
type Online struct {
	Name        string             `json:"name"`
	Mechanism   string             `json:"mechanism"`
	Prequential *prequential.Score `json:"prequential,omitempty"`
	Reason      string             `json:"reason,omitempty"` // it was left out for; empty: it was not
}

func (o Online) String() string {
	if o.Reason != "" {
		return "none: " + o.Reason
	}
	return fmt.Sprintf("%s (%s)", o.Prequential.Figures(), o.Mechanism)
}

// mostWork is the most rows times parameters of a stream that window learns from: minutes.
const mostWork = 1e8

// Follows reports whether a task has no end and follows a stream.
func Follows(job run.Job) bool { return manifest.Gradients(job.Plan).GetTop() > 0 }

// online trains learners without privacy on the rows of a run in its order, and scores them on the rows that the run
// scored.
func (s *Rehearsal) online(ctx context.Context, progress io.Writer, like *ahead) (out []Online, err error) {
	c := sim.OnlineConfig{Loss: s.job.Loss, Features: s.job.Features.Dim(), Intercept: s.job.Spec.Intercept != 0}
	work := float64(len(like.order)) * float64(c.Loss.Parameters(c.Features))
	for _, one := range []struct {
		Online
		make func() sim.Online
	}{
		{Online{Name: "sgd", Mechanism: "not private, a step of constant size a row"},
			func() sim.Online { return sim.NewSGD(c) }},
		{Online{Name: "window", Mechanism: fmt.Sprintf("not private, a fit of the last %d rows", sim.WindowRows)},
			func() sim.Online { return sim.NewWindow(c) }},
	} {
		if one.Name == "window" && work > mostWork {
			one.Reason = fmt.Sprintf("%d rows of %d parameters take too long to fit again and again", len(like.order),
				c.Loss.Parameters(c.Features))
		} else if one.Prequential, err = s.learnAhead(ctx, one.make(), like); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%s: %s\n", one.Name, one.Online)
		out = append(out, one.Online)
	}
	return out, nil
}

// learnAhead scores a learner on each row before it learns from it.
func (s *Rehearsal) learnAhead(ctx context.Context, learner sim.Online, like *ahead) (*prequential.Score, error) {
	p := prequential.New(s.job.Spec)
	for k, i := range like.order {
		for _, e := range like.rowsOf(i) {
			if k >= like.from {
				row, theta := learner.Ready(e)
				p.Add(s.predictor(theta), row)
			}
			if s.job.Loss.CheckLabel(e.Label) != nil {
				continue
			}
			if err := learner.Learn(ctx, e); err != nil {
				return nil, err
			}
		}
	}
	p.End()
	return p, nil
}

// drawStream draws the means over stretches of rows: of the private runs, with a band of one standard deviation, of the
// same method without noise, and of the online learners. Classes have a picture of the accuracy, too.
func (r report) drawStream(file string) error {
	type line struct {
		name string
		of   []*prequential.Score
	}
	lines := []line{{name: "private"}}
	for _, run := range r.Runs {
		lines[0].of = append(lines[0].of, run.Prequential)
	}
	if r.NonPrivate.Prequential != nil {
		lines = append(lines, line{"not private", []*prequential.Score{r.NonPrivate.Prequential}})
	}
	for _, o := range r.Online {
		if o.Prequential != nil {
			lines = append(lines, line{o.Name, []*prequential.Score{o.Prequential}})
		}
	}
	var all []picture.Panel
	for _, panel := range []struct {
		label string
		of    func(prequential.Stretch) *float64
	}{
		{"accuracy", func(s prequential.Stretch) *float64 { return s.Accuracy }},
		{"log loss", func(s prequential.Stretch) *float64 { return s.LogLoss }},
		{"loss", func(s prequential.Stretch) *float64 { return s.Loss }},
		{"mean square", func(s prequential.Stretch) *float64 { return s.SquaredError }},
	} {
		p := picture.Panel{Title: fmt.Sprintf("%s: epsilon = %s, delta = %g", r.Task, cli.Upper(r.Epsilon, 3), r.Delta),
			X: "rows", Y: panel.label + ", scored before learning", Grid: true, Legend: corner(panel.label != "accuracy")}
		for i, l := range lines {
			if points := stretched(l.of, panel.of); len(points) > 0 {
				p.Lines = append(p.Lines, curveOf(i, l.name, points))
			}
		}
		if len(p.Lines) > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return errors.New("no row was scored before it was learned from: the data end with the first look")
	}
	return picture.Write(file, all...)
}

// stretched returns the points of a score over several runs.
func stretched(runs []*prequential.Score, of func(prequential.Stretch) *float64) (points []spot) {
	for k, at := range runs[0].Curve {
		var values []float64
		for _, r := range runs {
			if k < len(r.Curve) && of(r.Curve[k]) != nil {
				values = append(values, *of(r.Curve[k]))
			}
		}
		if len(values) < len(runs) {
			continue
		}
		one := spot{Reports: at.Users, Mean: stat.Mean(values, nil)}
		if len(values) > 1 {
			one.SD = stat.StdDev(values, nil)
		}
		points = append(points, one)
	}
	return points
}
