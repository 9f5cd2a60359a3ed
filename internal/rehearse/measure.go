package rehearse

import (
	"strings"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/convex"
)

// A Measure is a score by which models are compared.
type Measure struct {
	Field string // of an Outcome, in JSON
	Label string // of an axis
	Falls bool   // better models have less of it

	short string // in a sentence
	of    func(Outcome) *float64
}

// MeasureOf returns the measure that suits a loss, on rows to score on.
func MeasureOf(loss string) Measure {
	traits := convex.TraitsOf(loss)
	switch {
	case traits.Labels.Classes():
		return Measure{"test_accuracy", "test accuracy", false, "accuracy",
			func(s Outcome) *float64 { return s.TestAccuracy }}
	case traits.Error == convex.Pinball:
		return Measure{"test_quantile_loss", "quantile loss on test data", true, "quantile loss",
			func(s Outcome) *float64 { return s.TestQuantile }}
	case traits.Error == convex.MeanAbsolute:
		return Measure{"test_mean_absolute_error", "test error (mean absolute)", true, "mean absolute error",
			func(s Outcome) *float64 { return s.TestAbsolute }}
	}
	return Measure{"test_error", "test error (root mean square)", true, "root mean squared error",
		func(s Outcome) *float64 { return s.TestError }}
}

// Name returns accuracy, error (root of the mean square), mean_absolute_error or quantile_loss.
func (m Measure) Name() string { return strings.TrimPrefix(m.Field, "test_") }

// Of returns what an evaluation has of it.
func (m Measure) Of(e model.Evaluation) float64 {
	var out Outcome
	out.test(e)
	return *m.of(out)
}

// OfConstant returns what the best constant does.
func (m Measure) OfConstant(b model.Baseline) float64 {
	var out Outcome
	out.constant(b)
	return *m.of(out)
}

// Gains returns by how much values are better than those that they are paired with.
func (m Measure) Gains(values, than []float64) []float64 {
	out := make([]float64, len(values))
	for i := range out {
		if out[i] = values[i] - than[i]; m.Falls {
			out[i] = -out[i]
		}
	}
	return out
}
