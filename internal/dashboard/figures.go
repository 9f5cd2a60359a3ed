package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
)

// By is the unit of the horizontal axis of the curves over rounds.
type By string

// The axes.
const (
	byRounds By = "rounds"
	byUsers  By = "users"
	byTime   By = "time"
)

// byOf parses the axis in a request; byRounds is the default.
func byOf(s string) By {
	if by := By(s); by == byUsers || by == byTime {
		return by
	}
	return byRounds
}

const noRound = "No round has been committed yet."

// A figure is a chart before it is drawn, and its CSV.
type figure struct {
	Chart
	plot plot
	lead [][]string // of the CSV, see plot.csv
}

func (f figure) chart() Chart {
	c := f.Chart
	c.draw(f.plot)
	return c
}

// abscissae returns the horizontal positions of the points, and the name of the axis.
func abscissae(points []roundPoint, by By, kind wording.Kind) (xs []float64, name string) {
	if len(points) == 0 {
		return nil, "round"
	}
	newest := points[len(points)-1].At
	unit, ago := ago(newest.Sub(points[0].At))
	name = map[By]string{byRounds: "round", byUsers: kind.Counted().Many + " counted", byTime: ago +
		" before the last round"}[by]
	for _, p := range points {
		xs = append(xs, map[By]float64{byRounds: float64(p.Round), byUsers: float64(p.Users),
			byTime: p.At.Sub(newest).Seconds() / unit.Seconds()}[by])
	}
	return xs, name
}

// ago returns the unit in which a duration of this length is shown.
func ago(long time.Duration) (unit time.Duration, name string) {
	switch {
	case long >= 72*time.Hour:
		return 24 * time.Hour, "days"
	case long >= 3*time.Hour:
		return time.Hour, "hours"
	case long >= 5*time.Minute:
		return time.Minute, "minutes"
	}
	return time.Second, "seconds"
}

// secondsTick prints seconds in the unit of the axis's step.
func secondsTick(v, step float64) string {
	switch {
	case step >= 3600:
		return tickLabel(v/3600, step/3600) + " h"
	case step >= 60:
		return tickLabel(v/60, step/60) + " min"
	case step >= 0.01:
		return tickLabel(v, step) + " s"
	}
	return tickLabel(v*1000, step*1000) + " ms"
}

// course describes how a line runs: its first, last, lowest and highest values. It is empty for a curve without
// values.
func course(c curve, points []roundPoint, format func(float64) string) string {
	i := slices.IndexFunc(c.y, finite)
	if i < 0 {
		return ""
	}
	last := len(c.y) - 1
	for !finite(c.y[last]) {
		last--
	}
	low, high, _ := spread(c.y)
	return fmt.Sprintf("%s: %s at round %d, %s at round %d, between %s and %s. ", c.name, format(c.y[i]), points[i].Round,
		format(c.y[last]), points[last].Round,
		format(low), format(high))
}

// A drawing makes the figures of a state, with curves over rounds along one axis.
type drawing struct {
	st *state
	by By
}

// reports returns the figure of reports per second, accepted and refused.
func (d drawing) reports() figure {
	points := d.st.rates.points
	c := Chart{ID: "reports", Title: "Reports per second", Empty: "No report has been counted since this process began.",
		Note: "Accepted and refused by the stage, as it counts messages, since this process began."}
	switch {
	case d.st.counts != nil || d.st.stage.asked && len(points) == 0:
	case d.st.stage.asked:
		c.Note = "Reports accepted and messages refused, round by round, since this process began."
	default:
		c.Note = "Reports accepted and messages refused, round by round: --stage-http shows them as they come."
	}
	f := figure{Chart: c, lead: [][]string{{"until"}}}
	accepted, refused := curve{name: "accepted"}, curve{name: "refused"}
	for _, p := range points {
		accepted.y, refused.y = append(accepted.y, p.accepted/p.seconds), append(refused.y, p.refused/p.seconds)
		f.plot.keys = append(f.plot.keys, float64(p.until.Unix()))
		f.plot.names = append(f.plot.names, clock(p.until, p.until))
		f.lead = append(f.lead, []string{p.until.UTC().Format(time.RFC3339)})
	}
	f.plot.curves, f.plot.zero, f.plot.format, f.plot.label = []curve{accepted, refused}, true, number, tickLabel
	if len(points) == 0 {
		return f
	}
	newest := points[len(points)-1].until
	unit, name := ago(newest.Sub(points[0].until))
	if f.AxisX = name + " ago"; d.st.stopped != nil {
		f.AxisX = name + " before the end"
	}
	for _, p := range points {
		f.plot.x = append(f.plot.x, p.until.Sub(newest).Seconds()/unit.Seconds())
	}
	_, most, _ := spread(accepted.y)
	f.Summary = fmt.Sprintf("%s reports accepted per second now, %s at most; %s refused per second now.",
		number(accepted.y[len(points)-1]), number(most), number(refused.y[len(points)-1]))
	return f
}

// validation returns the figures of the scores that the task has, none if validation is off.
func (d drawing) validation() (out []figure) {
	v := d.st.progress.Validation
	if v == nil {
		return nil
	}
	about := fmt.Sprintf("on %s that the model has not learned from yet; recent rounds count most. Band: confidence %g.",
		d.st.task.Row().Many, v.Confidence)
	if v.Repeated {
		about = fmt.Sprintf(
			"on the same %s in all rounds of a phase, from which the model has learned. Band, about them alone: confidence %g.",
			d.st.task.theirRows(), v.Confidence)
	}
	accuracy, loss := constants(d.st.progress.Baseline, d.st.task)
	if v.Accuracy != nil {
		out = append(out, d.scores(Chart{ID: "accuracy", Title: "Accuracy", Note: "Share of right predictions " + about},
			plot{format: percent, label: percentTick}, accuracy, func(p roundPoint) *score { return p.Accuracy }))
	}
	note := fmt.Sprintf("Mean loss, of one %s at most %s, %s %s", d.st.task.Row().One, number(v.LossBound), about,
		d.st.task.Expected.text())
	return append(out, d.scores(Chart{ID: "loss", Title: "Loss", Note: note}, plot{format: number, label: tickLabel},
		loss,
		func(p roundPoint) *score { return p.Loss }))
}

// surprise returns the figure of how surprising each round of a stream without an end was; false if there is none.
func (d drawing) surprise() (figure, bool) {
	if d.st.progress.Tracking == nil {
		return figure{}, false
	}
	own := curve{name: "surprise"}
	for _, r := range d.st.rounds.points {
		y := math.NaN()
		if r.Surprise != nil {
			y = *r.Surprise
		}
		own.y = append(own.y, y)
	}
	alarm := curve{name: "alarm", y: slices.Repeat([]float64{method.Alarm}, len(d.st.rounds.points))}
	t := *d.st.progress.Tracking
	note := fmt.Sprintf(
		"By how many deviations a round was farther from the model than expected. Above the line the stream has changed. The model remembers "+
			"about %s, and its loss is expected to be about %s above that of the best model.", counted(uint64(t.Memory),
			d.st.task.Counted()), number(t.Error))
	if t.Cohort > 0 {
		note += " " + strings.ToUpper(wording.NextRound(t)[:1]) + wording.NextRound(t)[1:] + "."
	}
	return d.roundFigure(Chart{ID: "surprise", Title: "Surprise", Note: note},
		plot{curves: []curve{own, alarm}, format: number, label: tickLabel}), true
}

// scores returns the figure of one score of progressive validation beside the best constant's; of returns nil for a
// round without the score.
func (d drawing) scores(c Chart, p plot, level constant, of func(roundPoint) *score) figure {
	c.Note += " To compare with: " + level.text(p.format)
	if d.st.progress.Tracking != nil && d.st.progress.Baseline != nil {
		c.Note += ", of the " + d.st.task.Row().Many + " of the first look"
	}
	c.Note += "."
	band := func(name string, part func(*score) method.Band) curve {
		out := curve{name: name}
		for _, r := range d.st.rounds.points {
			b := method.Band{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
			if s := of(r); s != nil {
				b = part(s)
			}
			out.y, out.low, out.high = append(out.y, b.Value), append(out.low, b.Low), append(out.high, b.High)
		}
		return out
	}
	p.curves = []curve{band("recent rounds", func(s *score) method.Band { return s.Recent })}
	if level.value != nil {
		p.curves = append(p.curves, curve{name: level.name,
			y: slices.Repeat([]float64{*level.value}, len(d.st.rounds.points))})
	}
	all := band("all rounds", func(s *score) method.Band { return s.Overall })
	all.apart = true
	p.curves = append(p.curves, all)
	return d.roundFigure(c, p)
}

// A constant is the score of the best constant prediction, or of guessing.
type constant struct {
	name  string
	value *float64 // nil: unknown
}

// constants returns the accuracy and the loss of the best constant. b is nil if nothing is released of the labels:
// then accuracy is compared with guessing.
func constants(b *practical.Baseline, task Task) (accuracy, loss constant) {
	accuracy, loss = constant{name: "the majority class"}, constant{name: "the best constant"}
	if task.Classes == 0 {
		loss.name = "the mean"
	}
	switch {
	case b != nil:
		accuracy.value, loss.value = b.Accuracy, b.Loss
	case task.Classes > 1:
		guess := 1 / float64(task.Classes)
		accuracy = constant{fmt.Sprintf("guessing among %d classes", task.Classes), &guess}
	}
	return accuracy, loss
}

// rootMeanSquare returns the error of a constant with squared loss c, as method.Scores.RootMeanSquare computes it.
func (c constant) rootMeanSquare(unit float64) constant {
	if c.value != nil {
		v := method.Scores{Recent: method.Band{Value: *c.value}}.RootMeanSquare(unit).Recent.Value
		c.value = &v
	}
	return c
}

func (c constant) text(format func(float64) string) string {
	if c.value == nil {
		return "that of " + c.name + " is not released"
	}
	return c.name + " has about " + format(*c.value)
}

// text describes the loss that the plan expects; empty if e is nil.
func (e *Expected) text() string {
	switch {
	case e == nil:
		return ""
	case !e.Bounded:
		return "The plan expects no figure: a practical plan has no bound."
	case e.Risk >= e.Start:
		return fmt.Sprintf(
			"The plan bounds the expected loss over that of the best model by %s, which says nothing: the start has at most %s.",
			number(e.Risk), number(e.Start))
	}
	return fmt.Sprintf("The plan expects at most %s more than the best model has, at the end.", number(e.Risk))
}
