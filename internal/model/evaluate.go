package model

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// An Evaluation is how a model does on examples. Accuracy is of classifiers, Error of regressions: the root mean squared
// error in the units of the label.
type Evaluation struct {
	Examples int      `json:"examples"`
	Invalid  int      `json:"invalid"` // rows that do not fit the declaration; not among the examples
	Loss     float64  `json:"loss"`    // mean, in the coordinates of the feature map
	Accuracy *float64 `json:"accuracy,omitempty"`
	Error    *float64 `json:"error,omitempty"`
}

// Evaluate runs the model over rows. A row that does not fit is counted and passed over; an error of the source ends it.
func (p Predictor) Evaluate(rows iter.Seq2[task.Row, error]) (Evaluation, error) {
	s := score{Predictor: p}
	var (
		example convex.Example
		unfit   *task.RowError
	)
	for row, err := range rows {
		if err == nil {
			err = p.Features.Map(row, &example)
		}
		switch {
		case errors.As(err, &unfit):
			s.invalid++
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
	scores              []float64
	examples, invalid   int
	sum, hits, squaring float64
}

func (s *score) add(e convex.Example) {
	s.examples++
	s.sum += s.Loss.Value(s.Theta, e)
	s.scores = s.Features.Scores(s.scores, s.Theta, e)
	predicted := s.Features.Predict(s.scores)
	if s.Features.Classification() {
		if predicted == e.Label {
			s.hits++
		}
		return
	}
	miss := predicted - s.Features.Target(e.Label)
	s.squaring += miss * miss
}

func (s *score) result() (Evaluation, error) {
	if s.examples == 0 {
		return Evaluation{}, fmt.Errorf("no example fits the task's declaration (%d rows do not)", s.invalid)
	}
	n := float64(s.examples)
	out := Evaluation{Examples: s.examples, Invalid: s.invalid, Loss: s.sum / n}
	if s.Features.Classification() {
		accuracy := s.hits / n
		out.Accuracy = &accuracy
	} else {
		rmse := math.Sqrt(s.squaring / n)
		out.Error = &rmse
	}
	return out, nil
}
