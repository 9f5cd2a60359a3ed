package client

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
)

// An encoder draws the packed counts of events at one point. It owns scratch memory; one goroutine uses it.
type encoder struct {
	terms   *Terms
	entropy rand.Source
	phase   *PhaseTerms           // of the round
	sum     *randomizer.VectorSum // of the phase
	point   []float64
	scales  []float64      // of the features; nil where they are as they are
	scaled  convex.Example // scratch
	scorer  *task.Scorer   // nil: no scores
	report  []float64      // scratch: a gradient with the scores after it, or what else the phase's reports are of
	counts  []uint32
}

func newEncoder(t *Terms, entropy rand.Source) *encoder {
	e := &encoder{terms: t, entropy: entropy}
	if t.Card != nil {
		e.scorer = t.Features.NewScorer(*t.Card, t.Loss)
	}
	return e
}

// at moves to the point and the scales of a round, in a phase of the plan.
func (e *encoder) at(phase int, point, scales []float64) error {
	if next := &e.terms.Phases[phase]; e.phase != next {
		sum, err := randomizer.NewVectorSum(next.Params, e.entropy)
		if err != nil {
			return fmt.Errorf("randomizer: %w", err)
		}
		e.phase, e.sum, e.report = next, sum, make([]float64, next.Params.Dim)
	}
	e.point, e.scales = slices.Clone(point), slices.Clone(scales)
	return nil
}

// draw answers what an event says in a round: always the same number of bytes. An event that is no event of the task,
// or whose gradient does not exist, is the zero vector: staying away would tell something about it.
func (e *encoder) draw(x convex.Example, invalid bool) ([]byte, error) {
	clear(e.report)
	params := e.phase.Params
	switch {
	case invalid || e.valid(x) != nil:
	case e.phase.Moments:
		e.terms.Scaling.Squares(e.report, x)
		convex.Clip(e.report, params.ClipNorm)
	default:
		e.learn(e.rescaled(x))
	}
	var err error
	if e.counts, err = e.sum.Encode(e.counts, e.report); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	packed := params.Pack(make([]byte, 0, params.ReportBytes()), e.counts)
	clear(e.counts)
	clear(e.report)
	clear(e.scaled.Value)
	return packed, nil
}

// learn writes an example's gradient at the point, clipped, and the point's scores, which are of the loss itself where the
// gradient is of its envelope. The two are bounded each on its own.
func (e *encoder) learn(x convex.Example) {
	at := len(e.report) - e.phase.Scores
	gradient, scores := e.report[:at], e.report[at:]
	e.phase.Loss.Gradient(gradient, e.point, x)
	convex.Clip(gradient, e.terms.Spec.Model.ClipNorm)
	if len(scores) > 0 {
		e.scorer.Score(scores, e.point, x)
	}
}

// rescaled is an example in the coordinates of the point; it is valid until the next one.
func (e *encoder) rescaled(x convex.Example) convex.Example {
	if e.scales == nil {
		return x
	}
	e.terms.Scaling.Rescale(&e.scaled, x, e.scales)
	return e.scaled
}

// valid says whether an example is one of the task. The error names positions, never contents.
func (e *encoder) valid(x convex.Example) error { return e.terms.Valid(x) }

// Valid says whether an example is an event of the task: its dimension, order, finiteness, and the label's domain. One
// that is not is reported as the zero vector.
func (t *Terms) Valid(x convex.Example) error {
	if err := x.Validate(t.Features.Dim()); err != nil {
		return err
	}
	return t.Loss.CheckLabel(x.Label)
}
