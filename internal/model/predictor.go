package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Predictor is a model made ready to score raw events.
type Predictor struct {
	Features *task.FeatureMap
	Loss     convex.Loss
	Theta    []float64 // in the coordinates of the map

	spec *task.Spec
}

// Spec returns the task that the model is of, as its snapshot declares it.
func (p Predictor) Spec() *task.Spec { return p.spec }

// NewPredictor reads a snapshot back. The format of the data may be another than the one the task learned from; empty
// is the task's own.
func NewPredictor(s Snapshot, format task.Format) (Predictor, error) {
	spec, err := task.ParseDeclaration(s.Declaration)
	if err == nil {
		spec, err = spec.WithPublic(s.PublicModel)
	}
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
	if s.Loss != spec.Model.Loss {
		return Predictor{}, fmt.Errorf("model: loss %q, its declaration says %q", s.Loss, spec.Model.Loss)
	}
	loss, err := spec.Loss()
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	scores := features.Outputs()
	if len(s.Weights) != scores || len(s.Intercept) != scores {
		return Predictor{}, fmt.Errorf("model: %d rows of weights and %d intercepts, want %d", len(s.Weights),
			len(s.Intercept), scores)
	}
	var theta []float64
	for i, row := range s.Weights {
		part, err := features.Redo(row, s.Intercept[i])
		if err != nil {
			return Predictor{}, fmt.Errorf("model: %w", err)
		}
		theta = append(theta, part...)
	}
	return Predictor{Features: features, Loss: loss, Theta: theta, spec: spec}, nil
}

// A prediction holds the prediction of a model for one event.
type prediction struct {
	// Scores are linear: of the positive class, or one a class; of a number in the units of the label, wherever it
	// lies, or of scale log its logarithm; of a count the logarithm of what is expected.
	Scores []float64
	// Probabilities are of the positive class, or one a class; none where the loss has none.
	Probabilities []float64
	Class         string // the label of the predicted class, as the task file writes it first; empty for regression
	// of a number or a count: the prediction in the units of the label, cut to the declared range (before the offset of
	// the public model is added, where the label has one); NaN for classes
	Value float64
}

// scored counts the events that were scored.
type scored struct {
	Rows    int64 `json:"rows"`
	Invalid int64 `json:"invalid"` // of them; they have no score
}

// ScoreOptions select how rows are scored. The zero value is the model's own decision, without a word about rows that
// do not fit, and rows are written when there are many.
type ScoreOptions struct {
	Threshold *float64             // decides for the positive class, as in Options
	Unfit     func(*task.RowError) // is called with each row that does not fit the declaration; it may be nil
	AtOnce    bool                 // the table is flushed after each row
}

// Score writes a prediction for every row to the table, one at a time. A row that does not fit the declaration goes
// to o.Unfit and has an empty line; an error of the source or the table ends it. Labels are neither needed nor looked
// at, if the rows come from a reader of an Unlabelled map.
func (p Predictor) Score(rows iter.Seq2[task.Row, error], table *Table, o ScoreOptions) (scored, error) {
	cut, err := p.Cut(o.Threshold)
	if err != nil {
		return scored{}, err
	}
	p.Features = p.Features.Unlabelled()
	var (
		count      scored
		example    convex.Example
		prediction prediction
	)
	for row, err := range rows {
		if err == nil {
			err = p.Features.Map(row, &example)
		}
		written := &prediction
		var bad *task.RowError
		switch {
		case errors.As(err, &bad):
			count.Invalid++
			written = nil
			if o.Unfit != nil {
				o.Unfit(bad)
			}
		case err != nil:
			return count, errors.Join(err, table.Flush()) // the rows before it are scored
		default:
			p.predict(example, cut, &prediction)
		}
		count.Rows++
		if err := table.write(row.File, row.Line, written); err != nil {
			return count, err
		}
		if o.AtOnce {
			if err := table.Flush(); err != nil {
				return count, err
			}
		}
	}
	return count, table.Flush()
}

// predict writes the prediction for a mapped event to dst, reusing its memory. Of two classes the positive one is
// predicted above the score cut.
func (p Predictor) predict(e convex.Example, cut float64, dst *prediction) {
	dst.Scores, dst.Probabilities, dst.Class, dst.Value = dst.Scores[:0], dst.Probabilities[:0], "", math.NaN()
	dst.Scores = p.Features.Scores(dst.Scores, p.Theta, e)
	predicted := p.decide(dst.Scores, cut)
	switch {
	case p.Features.Classification():
		dst.Class = p.Features.ClassName(predicted)
		dst.Probabilities = p.probabilities(dst.Probabilities, dst.Scores)
	default:
		dst.Value, dst.Scores[0] = predicted+e.Offset, p.Features.InLabel(dst.Scores[0])+e.Offset
	}
}

// decide returns the prediction for scores; see predict.
func (p Predictor) decide(scores []float64, cut float64) float64 {
	switch {
	case !p.Features.Classification() || len(scores) > 1:
		return p.Features.Predict(scores)
	case scores[0] > cut:
		return 1
	}
	return -1
}

// Rows are the weights of a model, a row for each score. In JSON one row is a list, several are a list of lists.
type Rows [][]float64

// MarshalJSON writes a single row without its outer list.
func (r Rows) MarshalJSON() ([]byte, error) {
	if len(r) == 1 {
		return json.Marshal(r[0])
	}
	return json.Marshal([][]float64(r))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rows) UnmarshalJSON(data []byte) error {
	if rest, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("[")); ok && bytes.HasPrefix(bytes.TrimSpace(rest),
		[]byte("[")) {
		return json.Unmarshal(data, (*[][]float64)(r))
	}
	*r = Rows{nil}
	return json.Unmarshal(data, &(*r)[0])
}

// Constants are the intercepts of a model, one for each score. In JSON a single one is a number, several are a list.
type Constants []float64

// MarshalJSON writes a single constant as a number.
func (c Constants) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]float64(c))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Constants) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*[]float64)(c))
	}
	*c = Constants{0}
	return json.Unmarshal(data, &(*c)[0])
}
