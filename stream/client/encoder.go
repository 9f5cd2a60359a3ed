package client

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// An encoder draws the packed counts of events at one point. It owns scratch memory; one goroutine uses it.
type encoder struct {
	terms    *Terms
	sum      *randomizer.VectorSum
	point    []float64
	gradient []float64
	counts   []uint32
}

func newEncoder(t *Terms, entropy rand.Source) (*encoder, error) {
	sum, err := randomizer.NewVectorSum(t.Params, entropy)
	if err != nil {
		return nil, fmt.Errorf("randomizer: %w", err)
	}
	return &encoder{terms: t, sum: sum, gradient: make([]float64, t.Params.Dim)}, nil
}

// at moves to the point of a round.
func (e *encoder) at(point []float64) { e.point = slices.Clone(point) }

// draw answers what an event says in a round: always the same number of bytes. An event that is no event of the task,
// or whose gradient does not exist, is the zero vector: staying away would tell something about it.
func (e *encoder) draw(x convex.Example, invalid bool) ([]byte, error) {
	clear(e.gradient)
	if !invalid && e.valid(x) == nil {
		e.terms.Loss.Gradient(e.gradient, e.point, x)
		convex.Clip(e.gradient, e.terms.Params.ClipNorm)
	}
	var err error
	if e.counts, err = e.sum.Encode(e.counts, e.gradient); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	packed := e.terms.Params.Pack(make([]byte, 0, e.terms.Params.ReportBytes()), e.counts)
	clear(e.counts)
	clear(e.gradient)
	return packed, nil
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
