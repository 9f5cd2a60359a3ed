package dashboard

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
)

// listed is how many points a chart's table lists, the newest first.
const listed = 12

const noRound = "No round has been committed since this process began."

// table fills in a chart's table from the newest points.
func table[T any](c *Chart, points []T, row func(T) []string) {
	for _, p := range slices.Backward(points[max(0, len(points)-listed):]) {
		if cells := row(p); cells != nil {
			c.Rows = append(c.Rows, cells)
		}
	}
}

func roundsOf(points []roundPoint, value func(roundPoint) float64) curve {
	var c curve
	for _, p := range points {
		c.x, c.y = append(c.x, float64(p.round)), append(c.y, value(p))
	}
	return c
}

// course says in words how a line runs.
func course(what string, c curve, format func(float64) string) string {
	i := slices.IndexFunc(c.y, finite)
	if i < 0 {
		return ""
	}
	last := len(c.y) - 1
	for !finite(c.y[last]) {
		last--
	}
	low, high, _ := spread(c.y)
	return fmt.Sprintf("%s: %s at round %.0f, %s at round %.0f, between %s and %s.", what, format(c.y[i]), c.x[i], format(c.y[last]), c.x[last],
		format(low), format(high))
}

func gradientChart(points []roundPoint) Chart {
	c := Chart{ID: "gradient", Title: "Gradient and noise", AxisX: "round", Empty: noRound,
		Note: "Norm of each round's noisy mean gradient, and the norm that its privacy noise has.", Head: []string{"Round", "Gradient", "Noise", "Ratio"}}
	gradient := roundsOf(points, func(p roundPoint) float64 {
		if p.gradient == 0 { // a round of moments
			return math.NaN()
		}
		return p.gradient
	})
	noise := roundsOf(points, func(p roundPoint) float64 { return p.noise })
	gradient.name, noise.name = "gradient, with its noise", "noise alone"
	c.draw(true, tickLabel, gradient, noise)
	c.Summary = course("Gradient", gradient, number) + " " + course("Noise", noise, number)
	table(&c, points, func(p roundPoint) []string {
		ratio, gradient := "none", "none"
		if r, ok := p.signal(); ok {
			ratio, gradient = number(r), number(p.gradient)
		}
		return []string{count(p.round), gradient, number(p.noise), ratio}
	})
	return c
}

func latencyChart(points []roundPoint) Chart {
	c := Chart{ID: "latency", Title: "Round latency", AxisX: "round", Empty: noRound,
		Note: "Seconds from announcing a round to committing it.", Head: []string{"Round", "Took"}}
	took := roundsOf(points, func(p roundPoint) float64 { return p.took.Seconds() })
	took.name = "seconds"
	c.draw(true, tickLabel, took)
	c.Summary = course("Seconds", took, number)
	table(&c, points, func(p roundPoint) []string { return []string{count(p.round), lasted(p.took)} })
	return c
}

func normChart(points []roundPoint) Chart {
	c := Chart{ID: "norm", Title: "Model norm", AxisX: "round", Empty: noRound,
		Note: "Euclidean norm of the released model, as it is learned.", Head: []string{"Round", "Norm"}}
	norm := roundsOf(points, func(p roundPoint) float64 { return p.model })
	norm.name = "norm"
	c.draw(true, tickLabel, norm)
	c.Summary = course("Norm", norm, number)
	table(&c, points, func(p roundPoint) []string { return []string{count(p.round), number(p.model)} })
	return c
}

func reportsChart(st *state) Chart {
	points := st.rates.points
	c := Chart{ID: "reports", Title: "Reports per second", Empty: "No report has been counted since this process began.",
		Note: "Accepted and refused by the stage, as it counts messages.", Head: []string{"Until", "Accepted per second", "Refused per second"}, AxisX: "seconds ago"}
	switch {
	case st.counted || st.stage.asked && len(points) == 0:
	case st.stage.asked:
		c.Note = "Users accepted and messages refused, round by round."
	default:
		c.Note = "Users accepted and messages refused, round by round: --stage-http shows them as they come."
	}
	if st.stopped != nil {
		c.AxisX = "seconds before the end"
	}
	accepted, refused := curve{name: "accepted"}, curve{name: "refused"}
	for _, p := range points {
		ago := p.until.Sub(points[len(points)-1].until).Seconds()
		accepted.x, refused.x = append(accepted.x, ago), append(refused.x, ago)
		accepted.y, refused.y = append(accepted.y, p.accepted/p.seconds), append(refused.y, p.refused/p.seconds)
	}
	c.draw(true, tickLabel, accepted, refused)
	if len(points) > 0 {
		_, most, _ := spread(accepted.y)
		c.Summary = fmt.Sprintf("%s reports accepted per second now, %s at most; %s refused per second now.",
			number(accepted.y[len(points)-1]), number(most), number(refused.y[len(points)-1]))
	}
	table(&c, points, func(p ratePoint) []string {
		return []string{clock(p.until, p.until), number(p.accepted / p.seconds), number(p.refused / p.seconds)}
	})
	return c
}

// A constant is what the best constant prediction scores.
type constant struct {
	name  string
	value *float64 // nil: unknown
}

// constants are its accuracy and its loss; b is nil where nothing is released of the labels.
func constants(b *practical.Baseline) (accuracy, loss constant) {
	accuracy, loss = constant{name: "majority class"}, constant{name: "best constant"}
	if b != nil {
		accuracy.value, loss.value = b.Accuracy, b.Loss
	}
	return accuracy, loss
}

func (c constant) text(format func(float64) string) string {
	if c.value == nil {
		return "that of the " + c.name + " is not released"
	}
	return "the " + c.name + " has about " + format(*c.value)
}

// validationChart draws one score of progressive validation beside that of the best constant; score is nil where a round has none.
func validationChart(id, title, note string, points []roundPoint, format func(float64) string, level constant,
	score func(*method.Validation) *method.Scores) Chart {
	c := Chart{ID: id, Title: title, AxisX: "round", Empty: noRound, Note: note + " To compare with: " + level.text(format) + ".",
		Head: []string{"Round", "Recent", "Band of it", "All rounds", "Band of it"}}
	line := curve{name: "recent rounds"}
	band := func(b method.Band) string { return format(b.Low) + " to " + format(b.High) }
	var last *method.Validation
	for _, p := range points {
		if p.validation == nil || p.validation.Rounds == 0 {
			continue
		}
		if s := score(p.validation); s != nil {
			line.x, line.y = append(line.x, float64(p.round)), append(line.y, s.Recent.Value)
			line.low, line.high = append(line.low, s.Recent.Low), append(line.high, s.Recent.High)
			last = p.validation
		}
	}
	if last == nil {
		return c
	}
	curves := []curve{line}
	if level.value != nil {
		curves = append(curves, curve{name: level.name, x: line.x, y: slices.Repeat([]float64{*level.value}, len(line.x))})
	}
	c.draw(false, func(v, step float64) string {
		if id == "accuracy" {
			return tickLabel(100*v, 100*step) + " %"
		}
		return tickLabel(v, step)
	}, curves...)
	s := score(last)
	c.Summary = course("Recent rounds", line, format) +
		fmt.Sprintf(" Over all rounds %s, %s. Bands have confidence %g.", format(s.Overall.Value), band(s.Overall), last.Confidence)
	table(&c, points, func(p roundPoint) []string {
		if p.validation == nil || p.validation.Rounds == 0 || score(p.validation) == nil {
			return nil
		}
		s := score(p.validation)
		return []string{count(p.round), format(s.Recent.Value), band(s.Recent), format(s.Overall.Value), band(s.Overall)}
	})
	return c
}

// validationCharts are those of the scores that the task has, none where validation is off.
func validationCharts(st *state) []Chart {
	v := st.progress.Validation
	if v == nil {
		return nil
	}
	about := fmt.Sprintf("on events that the model has not learned from yet; recent rounds count most. Band: confidence %g.", v.Confidence)
	if v.Repeated {
		about = fmt.Sprintf("on the same users' events in all rounds of a phase, from which the model has learned. Band, about them alone: confidence %g.", v.Confidence)
	}
	var out []Chart
	accuracy, loss := constants(st.progress.Baseline)
	if v.Accuracy != nil {
		out = append(out, validationChart("accuracy", "Accuracy", "Share of right predictions "+about, st.rounds.points, percent, accuracy,
			func(v *method.Validation) *method.Scores { return v.Accuracy }))
	}
	return append(out, validationChart("loss", "Loss", fmt.Sprintf("Mean loss, of one event at most %s, %s", number(v.LossBound), about), st.rounds.points, number, loss,
		func(v *method.Validation) *method.Scores { return &v.Loss }))
}
