package model

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// An Evaluation is how a model does on examples. Accuracy is of classifiers, the errors are of numbers and counts, in the units of
// the label; the last two are of quantiles.
type Evaluation struct {
	Examples int      `json:"examples"`
	Invalid  int      `json:"invalid"` // rows that do not fit the declaration; not among the examples
	Loss     float64  `json:"loss"`    // mean, in the coordinates of the feature map
	Accuracy *float64 `json:"accuracy,omitempty"`
	Error    *float64 `json:"error,omitempty"` // root of the mean square
	// MeanAbsoluteError is the mean distance of prediction and label.
	MeanAbsoluteError *float64 `json:"mean_absolute_error,omitempty"`
	// Coverage is the share of labels at most their prediction, near the level for a good model of a quantile.
	Coverage *float64 `json:"coverage,omitempty"`
	// QuantileLoss is the mean pinball loss.
	QuantileLoss *float64 `json:"quantile_loss,omitempty"`
}

// Evaluate runs the model over rows. A row that does not fit is counted, goes to unfit, which may be nil, and is passed
// over; an error of the source ends it.
func (p Predictor) Evaluate(rows iter.Seq2[task.Row, error], unfit func(*task.RowError)) (Evaluation, error) {
	s := score{Predictor: p}
	var (
		example convex.Example
		bad     *task.RowError
	)
	for row, err := range rows {
		if err == nil {
			err = p.Features.Map(row, &example)
		}
		switch {
		case errors.As(err, &bad):
			s.invalid++
			if unfit != nil {
				unfit(bad)
			}
		case err != nil:
			return Evaluation{}, err
		default:
			s.add(example)
		}
	}
	return s.result()
}

// EvaluateExamples is Evaluate on examples that are mapped already.
func (p Predictor) EvaluateExamples(examples []convex.Example) (Evaluation, error) {
	s := score{Predictor: p}
	for _, e := range examples {
		s.add(e)
	}
	return s.result()
}

// A score adds up how a model does.
type score struct {
	Predictor
	scores            []float64
	examples, invalid int
	loss, hits        float64
	square, absolute  float64
	covered, pinball  float64
}

func (s *score) add(e convex.Example) {
	s.examples++
	s.loss += s.Loss.Value(s.Theta, e)
	s.scores = s.Features.Scores(s.scores, s.Theta, e)
	predicted := s.Features.Predict(s.scores)
	if s.Features.Classification() {
		if predicted == e.Label {
			s.hits++
		}
		return
	}
	miss := s.Features.Target(e.Label) - predicted
	s.square += miss * miss
	s.absolute += math.Abs(miss)
	if miss <= 0 {
		s.covered++
	}
	if s.traits().Error == convex.Pinball { // the loss itself, in the units of the label
		s.pinball += s.Loss.Value([]float64{1}, convex.Example{Value: []float64{predicted}, Label: s.Features.Target(e.Label)})
	}
}

func (s *score) result() (Evaluation, error) {
	if s.examples == 0 {
		return Evaluation{}, fmt.Errorf("no example fits the task's declaration (%d rows do not)", s.invalid)
	}
	mean := func(sum float64) *float64 {
		m := sum / float64(s.examples)
		return &m
	}
	out := Evaluation{Examples: s.examples, Invalid: s.invalid, Loss: *mean(s.loss)}
	if s.Features.Classification() {
		out.Accuracy = mean(s.hits)
		return out, nil
	}
	out.Error, out.MeanAbsoluteError = mean(s.square), mean(s.absolute)
	*out.Error = math.Sqrt(*out.Error)
	if s.traits().Error == convex.Pinball {
		out.Coverage, out.QuantileLoss = mean(s.covered), mean(s.pinball)
	}
	return out, nil
}
