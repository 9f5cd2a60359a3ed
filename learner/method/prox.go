package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// Prox is phased output perturbation: an answer is the mean over blocks of the minimisers of their loss + (lambda/2)||.
// - c||^2, less c, and
//
//	y_i = c_i + answer,   c_{i+1} = Pi(y_i),   i = 0 .. P-1,
//
// with c_i the announced point. On one block this is the proximal point algorithm. Its model is the projection of the
// mean of y_i over the last Average rounds; docs/reference/bounds.md bounds its risk. The mean is taken before the
// projection, so that noise is averaged and not cut. Before these rounds the model is c_i. A skipped round counts as
// one of the P and enters no mean.
type Prox struct {
	base
	average uint64
	center  []float64 // c_i
	mean    []float64 // of y; before the averaged rounds, the last y
	in      uint64    // answers in the mean
}

// ProxConfig configures Prox.
type ProxConfig struct {
	Dim     int
	Set     convex.Set
	Start   []float64 // c_0 in Set; nil means Set's own
	Steps   uint64    // P
	Average uint64    // 1 to P
}

// ProxAverage returns the number of last rounds that the model averages: half of all rounds and one more.
func ProxAverage(rounds uint64) uint64 { return min(rounds, rounds/2+1) }

// NewProx returns the method at its start. The error names the field that does not fit.
func NewProx(c ProxConfig) (*Prox, error) {
	if c.Average < 1 || c.Average > c.Steps {
		return nil, fmt.Errorf("prox: average: %d, want 1 to %d", c.Average, c.Steps)
	}
	b, err := newBase(methodProx, settings{dim: c.Dim, set: c.Set, start: c.Start, steps: c.Steps}, float64(c.Average))
	if err != nil {
		return nil, fmt.Errorf("prox: %w", err)
	}
	return &Prox{base: b, average: c.Average, center: slices.Clone(b.start), mean: slices.Clone(b.start)}, nil
}

func (c ProxConfig) length() uint64 { return c.Steps }

// Begin returns the method of one stage, see Stage.
func (c ProxConfig) Begin(start []float64) (Method, error) {
	c.Start = start
	return NewProx(c)
}

// Query returns the query for minimisers around c_i.
func (p *Prox) Query() Query { return p.query(slices.Clone(p.center)) }

// Model returns the projected mean.
func (p *Prox) Model() []float64 {
	out := slices.Clone(p.mean)
	p.set.Project(out, out)
	return out
}

// Step moves the centre by the answer and updates the mean.
func (p *Prox) Step(e Estimate) error {
	if err := p.validate(e); err != nil {
		return err
	}
	next := make([]float64, len(p.center))
	for i, move := range e.Gradient {
		next[i] = p.center[i] + move
	}
	in := p.in
	if p.position()+p.average >= p.steps {
		in++
	}
	mean, share := slices.Clone(p.mean), float64(max(in, 1))
	for i, y := range next {
		mean[i] += (y - mean[i]) / share
	}
	if !finite(next) || !finite(mean) {
		return errOverflow()
	}
	p.taken, p.mean, p.in = p.taken+1, mean, in
	p.set.Project(p.center, next)
	return nil
}

// MarshalBinary returns the state, see learner.Algorithm.
func (p *Prox) MarshalBinary() ([]byte, error) {
	return AppendFloats(p.encode(p.center, p.mean), float64(p.in)), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *Prox) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, p.header())
	if err != nil {
		return err
	}
	if len(rest) != 16*h.dim+8 {
		return fmt.Errorf("%w: %d bytes, want %d for dimension %d", ErrState, len(data), headerLen+16*h.dim+8, h.dim)
	}
	if h.count > p.steps || h.other > p.steps-h.count {
		return fmt.Errorf("%w: %d steps taken and %d passed over of %d", ErrState, h.count, h.other, p.steps)
	}
	center, mean, in := Floats(rest[:8*h.dim]), Floats(rest[8*h.dim:16*h.dim]), Floats(rest[16*h.dim:])[0]
	at := h.count + h.other
	tail := float64(at - min(at, p.steps-p.average)) // rounds whose answers are in the mean
	switch {
	case !p.set.Contains(center) || !finite(mean):
		return fmt.Errorf("%w: a vector is outside the constraint set, or not finite", ErrState)
	case h.count == 0 && !(slices.Equal(center, p.start) && slices.Equal(mean, p.start)):
		return fmt.Errorf("%w: moved without a step", ErrState)
	case !(in >= tail-float64(h.other) && in <= min(tail, float64(h.count))) || in != math.Trunc(in) || math.Signbit(in):
		return fmt.Errorf("%w: %v answers in the mean of %d steps", ErrState, in, h.count)
	}
	p.taken, p.skipped, p.center, p.mean, p.in = h.count, h.other, center, mean, uint64(in)
	return nil
}
