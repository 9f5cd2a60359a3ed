package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	canvas "gonum.org/v1/plot/vg/draw"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/planning"
)

// checkPicture refuses a file name before anything is computed for it.
func checkPicture(file string) error {
	if ext := strings.ToLower(filepath.Ext(file)); file != "" && ext != ".svg" && ext != ".png" {
		return cli.Usagef("--plot %s: want a name that ends in .svg or .png", file)
	}
	return cli.Writable("--plot", file)
}

// A riskCurve is one line of both pictures.
type riskCurve struct {
	name string
	at   func(users uint64, epsilon float64) float64
}

// curves returns the risk curves of the algorithms that apply and of the baselines.
func (s planSurvey) curves() ([]riskCurve, error) {
	var out []riskCurve
	for _, a := range s.alternatives {
		if a.Err != nil {
			continue
		}
		c, err := s.job.Planner.Curve(s.job.Problem, a.Proposal)
		if err != nil {
			return nil, err
		}
		out = append(out, riskCurve{name: a.Method, at: c.At})
	}
	for _, b := range s.baselines {
		if b.Err != nil || b.Name == planning.BaselinePaper {
			continue
		}
		c, err := b.Curve(s.job.Problem)
		if err != nil {
			return nil, err
		}
		out = append(out, riskCurve{name: b.Name + ": " + b.Method, at: c.At})
	}
	return out, nil
}

// draw writes two pictures beside each other: predicted risk over users and over epsilon.
func (s planSurvey) draw(file string) error {
	if s.job.Problem.Practical != nil {
		return cli.Usagef("--plot: no bound is known of a practical plan: want schedule.plan=proved")
	}
	curves, err := s.curves()
	if err != nil {
		return err
	}
	p := s.job.Problem
	users := riskPlot(fmt.Sprintf("%s: bound on the excess risk, epsilon = %g", s.report.Task, p.Epsilon),
		s.report.All().Many)
	epsilons := riskPlot(fmt.Sprintf("%s, delta = %g", s.report.All().Count(p.Users), p.Delta), "epsilon")
	for i, c := range curves {
		for _, one := range [...]struct {
			to     *plot.Plot
			points plotter.XYs
		}{
			{users, sample(float64(p.Users), 64, 24, math.Inf(1), func(x float64) float64 {
				return c.at(uint64(x),
					p.Epsilon)
			})},
			{epsilons, sample(p.Epsilon, 8, 12, 60, func(x float64) float64 { return c.at(p.Users, x) })},
		} {
			if len(one.points) == 0 {
				continue
			}
			line, err := plotter.NewLine(one.points)
			if err != nil {
				return fmt.Errorf("draw: %w", err)
			}
			line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/7), vg.Points(1.5)
			one.to.Add(line)
			if one.to == users {
				one.to.Legend.Add(c.name, line)
			}
		}
	}
	for _, q := range []*plot.Plot{users, epsilons} {
		trivial := plotter.NewFunction(func(float64) float64 { return s.job.TrivialRisk })
		trivial.Color, trivial.Dashes = plotutil.Color(2), plotutil.Dashes(2)
		q.Add(trivial)
		if q == users {
			q.Legend.Add("the start", trivial)
		}
		spread(&q.Y)
	}
	return savePlots(file, users, epsilons)
}

func riskPlot(title, x string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, "expected excess risk, at most"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	return p
}

// sample evaluates on a grid from x/factor to x*factor, points to each side; what is not finite is left out.
func sample(x, factor float64, points int, most float64, f func(float64) float64) (out plotter.XYs) {
	for i := -points; i <= points; i++ {
		at := x * math.Pow(factor, float64(i)/float64(points))
		if y := f(at); at <= most && y > 0 && !math.IsInf(y, 0) {
			out = append(out, plotter.XY{X: at, Y: y})
		}
	}
	return out
}

// spread sets the range of a logarithmic axis that is a point, or reaches down to 0, to a factor of ten on either
// side of its maximum.
func spread(a *plot.Axis) {
	if a.Min <= 0 || a.Max <= a.Min {
		a.Min, a.Max = a.Max/10, a.Max*10
	}
}

// savePlots writes the pictures side by side.
func savePlots(file string, plots ...*plot.Plot) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), ".")
	paper, err := canvas.NewFormattedCanvas(vg.Length(len(plots))*6.5*vg.Inch, 5*vg.Inch, format)
	if err != nil {
		return cli.Usagef("--plot: %w", err)
	}
	tiles := canvas.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Points(20), PadTop: vg.Points(6), PadBottom: vg.Points(6),
		PadLeft: vg.Points(6), PadRight: vg.Points(12)}
	area := canvas.New(paper)
	for i, p := range plots {
		p.Draw(tiles.At(area, i, 0))
	}
	f, err := os.Create(file)
	if err != nil {
		return cli.Usagef("--plot: %w", err)
	}
	if _, err := paper.WriteTo(f); err != nil {
		f.Close()
		return fmt.Errorf("--plot: %w", err)
	}
	return f.Close()
}
