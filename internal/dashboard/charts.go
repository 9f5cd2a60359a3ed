package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// charts are the charts of every page, in its order. They come after the charts of quality. An ID is the id of the
// chart's element, the name of its part in an event, and the name of its CSV.
var charts = [...]func(drawing) figure{
	overRounds(Chart{ID: "gradient", Title: "Gradient and noise",
		Note: "Norm of each round's noisy mean gradient, and the norm that its privacy noise has."},
		plot{zero: true, format: number, label: tickLabel},
		line{name: "gradient with its noise", of: func(p roundPoint) float64 {
			if p.Gradient == 0 { // a round of moments
				return math.NaN()
			}
			return p.Gradient
		}},
		line{name: "noise alone", of: func(p roundPoint) float64 { return p.Noise }},
		line{name: "ratio", apart: true, of: func(p roundPoint) float64 {
			if r, ok := p.signal(); ok {
				return r
			}
			return math.NaN()
		}}),
	drawing.reports,
	overRounds(Chart{ID: "latency", Title: "Round latency",
		Note: "From announcing a round to committing it; of rounds that were merged, the mean."},
		plot{zero: true, cut: true,
			format: func(v float64) string { return lasted(time.Duration(v * float64(time.Second))) }, label: secondsTick},
		line{name: "took", of: func(p roundPoint) float64 { return p.Took.Seconds() / float64(p.Count) }},
		line{name: "slowest", apart: true, of: func(p roundPoint) float64 { return p.Slowest.Seconds() }}),
	overRounds(Chart{ID: "norm", Title: "Model norm",
		Note: "Euclidean norm of the released model, as it is learned."},
		plot{zero: true, format: number, label: tickLabel},
		line{name: "norm", of: func(p roundPoint) float64 { return p.Model }}),
}

// A line is a curve with a value for each round that was kept, NaN where it has none.
type line struct {
	name  string
	of    func(roundPoint) float64
	apart bool // of table and CSV alone
}

// overRounds makes a chart of lines over rounds.
func overRounds(c Chart, p plot, lines ...line) func(drawing) figure {
	return func(d drawing) figure {
		p := p
		for _, l := range lines {
			drawn := curve{name: l.name, apart: l.apart}
			for _, r := range d.st.rounds.points {
				drawn.y = append(drawn.y, l.of(r))
			}
			p.curves = append(p.curves, drawn)
		}
		return d.roundFigure(c, p)
	}
}

// quality returns the figures that show how good the model is, of which there are as many as the task has scores.
func (d drawing) quality() []figure {
	out := d.validation()
	if f, streams := d.surprise(); streams {
		out = append(out, f)
	}
	return out
}

// figures returns all figures of a page: figures of quality first.
func (d drawing) figures() []figure {
	out := d.quality()
	for _, of := range charts {
		out = append(out, of(d))
	}
	return out
}

// roundFigure returns a figure with a point for each round that was kept.
func (d drawing) roundFigure(c Chart, p plot) figure {
	points := d.st.rounds.points
	c.Empty = noRound
	p.x, c.AxisX = abscissae(points, d.by, d.st.task.Kind)
	f := figure{Chart: c, lead: [][]string{{"round", "users", "time", "restarts_before", "attempts_reopened_before",
		"void_rounds_before", "alarms"}}}
	for _, r := range points {
		p.keys = append(p.keys, float64(r.Round))
		p.names = append(p.names, "Round "+count(r.Round))
		p.more = append(p.more, fmt.Sprintf("%s, %s.", counted(r.Users, d.st.task.Counted()), clock(r.At, r.At)))
		p.marks = append(p.marks, r.Marks)
		n := func(n uint64) string { return strconv.FormatUint(n, 10) }
		f.lead = append(f.lead, []string{n(r.Round), n(r.Users), r.At.UTC().Format(time.RFC3339), n(r.Marks.Restarts),
			n(r.Marks.Reopened), n(r.Marks.Void), n(r.Marks.Alarms)})
	}
	f.plot = p
	for _, k := range p.curves {
		if !k.apart {
			f.Summary += course(k, points, p.format)
		}
	}
	return f
}
