package rehearse

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
)

// A verdict compares the private models, by one score, with models that cost no privacy.
type verdict struct {
	Score    string  `json:"score"` // the field of the runs that is compared
	Private  float64 `json:"private"`
	Constant float64 `json:"constant"`
	// Start scores the snapshot that the task begins with; null: there is none.
	Start     *float64 `json:"start,omitempty"`
	Exact     float64  `json:"exact"`               // the same method without noise
	Converged *float64 `json:"converged,omitempty"` // the same features without privacy; null where it was not fitted
	Text      string   `json:"text"`
}

// scoreOfVerdict returns the score by which models of a loss are compared, on the test data where there are some.
func (s *Rehearsal) scoreOfVerdict(r *report) Measure {
	switch {
	case s.Test == nil:
		return Measure{Field: "train_loss", Falls: true, short: "train loss",
			of: func(s Outcome) *float64 { return &s.TrainLoss }}
	case r.Mean.TestLogLoss != nil:
		return Measure{Field: "test_log_loss", Falls: true, short: "log loss",
			of: func(s Outcome) *float64 { return s.TestLogLoss }}
	}
	return MeasureOf(s.spec.Model.Loss)
}

// verdict compares the runs of the report. It returns nil for a task without an end, in which users score the model on
// the way and other learners run beside it.
func (s *Rehearsal) verdict(ctx context.Context, r *report) (v *verdict, err error) {
	m := s.scoreOfVerdict(r)
	if Follows(s.job) || m.of(r.Mean) == nil || m.of(r.NonPrivate) == nil || m.of(r.Baseline) == nil {
		return nil, nil
	}
	v = &verdict{Score: m.Field, Private: *m.of(r.Mean), Constant: *m.of(r.Baseline), Exact: *m.of(r.NonPrivate)}
	if first := s.first(); first != nil {
		start, err := s.Score(first)
		if err != nil {
			return nil, err
		}
		v.Start = m.of(start)
	}
	if v.Converged, err = s.convergedScore(ctx, r, m); err != nil {
		return nil, err
	}
	var sd float64
	if r.SD != nil {
		sd = *m.of(*r.SD) / math.Sqrt(float64(len(r.Runs)))
	}
	if v.Text = v.words(m, sd, s.job.Features.HasOffset()); r.SD == nil {
		v.Text += " (one seed: small differences may be chance)"
	}
	return v, nil
}

// first returns the model before the first round where it is worth something: the start, or the public prediction that
// labels are less; else nil.
func (s *Rehearsal) first() []float64 {
	if s.job.Start != nil {
		return s.job.Start.Point
	}
	return s.job.Features.Origin()
}

// quicklyFitted bounds the numbers, rows times parameters, of data that are fitted until convergence unasked: seconds.
const quicklyFitted = 1 << 22

// convergedScore returns the score of the baseline "converged", which is fitted where it was not asked for and takes
// seconds; nil where there is none.
func (s *Rehearsal) convergedScore(ctx context.Context, r *report, m Measure) (*float64, error) {
	asked := slices.IndexFunc(r.Baselines, func(b baseline) bool { return b.Name == baselineConverged })
	var b baseline
	switch {
	case asked >= 0:
		b = r.Baselines[asked]
	case len(s.Train)*s.job.Problem.Dim <= quicklyFitted:
		b = s.baseline(ctx, trials{name: baselineConverged, progress: io.Discard})
	}
	if b.Mean == nil {
		return nil, ctx.Err()
	}
	return m.of(*b.Mean), nil
}

// constantOf names the best constant of a task, with labels minus a public prediction if offset is set.
func constantOf(offset bool) string {
	if offset {
		return "the public prediction and a constant"
	}
	return "the best constant"
}

// words compares in one sentence. sd is the standard error of the private score over the seeds, 0 where it is unknown;
// offset reports whether the start is a public prediction that labels are less.
func (v *verdict) words(m Measure, sd float64, offset bool) string {
	constant, start := constantOf(offset), "the start as it is"
	if offset {
		start = "the public prediction alone"
	}
	by := func(other float64) float64 { // above 0 where the private models are better
		if m.Falls {
			return other - v.Private
		}
		return v.Private - other
	}
	compared := func(what string, other float64) string {
		word := "no better than"
		switch d := by(other); {
		case d > 2*sd:
			word = "better than"
		case d < -2*sd:
			word = "worse than"
		}
		return fmt.Sprintf("%s %s (%.4g)", word, what, other)
	}
	text := fmt.Sprintf("%s %.4g: %s", m.short, v.Private, compared(constant, v.Constant))
	if v.Start != nil {
		text += ", " + compared(start, *v.Start)
	}
	text += fmt.Sprintf("; without noise %.4g", v.Exact)
	if v.Converged != nil {
		text += fmt.Sprintf(", without privacy and until it converges %.4g", *v.Converged)
	}
	switch {
	case v.Start != nil && by(*v.Start) <= 2*sd:
		text += ". Use " + start + ", or ask for more users or a larger epsilon"
	case !offset && by(v.Constant) <= 2*sd:
		text += ". Nothing was learned from the features"
	}
	return text
}
