package pipeline

import (
	"encoding/json"
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

// Evaluate runs parameters theta, in the coordinates of the map, over rows. A row that does not fit is counted and
// passed over; an error of the source ends it.
func Evaluate(features *task.FeatureMap, loss convex.Loss, theta []float64, rows iter.Seq2[task.Row, error]) (Evaluation, error) {
	s := score{features: features, loss: loss, theta: theta}
	var (
		example convex.Example
		unfit   *task.RowError
	)
	for row, err := range rows {
		if err == nil {
			err = features.Map(row, &example)
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

// A score adds up how a model does.
type score struct {
	features            *task.FeatureMap
	loss                convex.Loss
	theta               []float64
	examples, invalid   int
	sum, hits, squaring float64
}

func (s *score) add(e convex.Example) {
	s.examples++
	s.sum += s.loss.Value(s.theta, e)
	z := e.Dot(s.theta)
	if s.features.Classification() {
		if s.features.Decide(z) == e.Label {
			s.hits++
		}
		return
	}
	miss := s.features.Target(z) - s.features.Target(e.Label)
	s.squaring += miss * miss
}

func (s *score) result() (Evaluation, error) {
	if s.examples == 0 {
		return Evaluation{}, fmt.Errorf("no example fits the task's declaration (%d rows do not)", s.invalid)
	}
	n := float64(s.examples)
	out := Evaluation{Examples: s.examples, Invalid: s.invalid, Loss: s.sum / n}
	if s.features.Classification() {
		accuracy := s.hits / n
		out.Accuracy = &accuracy
	} else {
		rmse := math.Sqrt(s.squaring / n)
		out.Error = &rmse
	}
	return out, nil
}

// A Predictor is a snapshot made ready to score raw events.
type Predictor struct {
	Features *task.FeatureMap
	Loss     convex.Loss
	Theta    []float64 // in the coordinates of the map
}

// NewPredictor reads a snapshot back. The format of the data may be another than the one the task learned from.
func NewPredictor(model []byte, format task.Format) (Predictor, error) {
	var s Snapshot
	if err := json.Unmarshal(model, &s); err != nil {
		return Predictor{}, fmt.Errorf("model: not a snapshot in JSON: %w", err)
	}
	if s.FormatVersion != SnapshotVersion {
		return Predictor{}, fmt.Errorf("model: format_version %d, this program reads %d", s.FormatVersion, SnapshotVersion)
	}
	spec, err := task.ParseDeclaration(s.Declaration)
	if err != nil {
		return Predictor{}, fmt.Errorf("model: declaration: %w", err)
	}
	if format != "" {
		if spec, err = spec.ReadAs(format); err != nil {
			return Predictor{}, fmt.Errorf("--format: %w", err)
		}
	}
	features, err := spec.Compile()
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	theta, err := features.Redo(s.Weights, s.Intercept)
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	if s.Loss != spec.Model.Loss {
		return Predictor{}, fmt.Errorf("model: loss %q, its declaration says %q", s.Loss, spec.Model.Loss)
	}
	loss, err := convex.NewLoss(s.Loss)
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	return Predictor{Features: features, Loss: loss, Theta: theta}, nil
}
