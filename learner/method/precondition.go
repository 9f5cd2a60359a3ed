package method

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// Precondition is a method that runs in coordinates scaled by what a first cohort says about the features: its first step asks for
// their second moments, and all others are those of the method, in coordinates x_j s_j with s_j = 1/sqrt(max(h_j, 0) + c + std). The
// scales are post-processing of a released batch. Devices clip the gradient in the scaled coordinates like any other, so what a
// user can change in a round does not depend on the scales, and neither does what the round costs him.
//
// A void round of moments is no step, as in any phase of new users: the next cohort is asked, and nobody learns before there are
// moments. Its model is the method's, in the scaled coordinates; Scales says which.
type Precondition struct {
	how    convex.Preconditioner
	inner  Method
	scales []float64 // nil before the moments are there
	config [sha256.Size]byte
}

// NewPrecondition puts a first step that asks for moments before a method at its start.
func NewPrecondition(how convex.Preconditioner, inner Method) (*Precondition, error) {
	if err := how.Validate(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if how.Dim > MaxDim {
		return nil, fmt.Errorf("plan: precondition: dim %d, want at most %d", how.Dim, MaxDim)
	}
	out := &Precondition{how: how, inner: inner}
	h := sha256.New()
	own := header{method: methodMoments, dim: how.Dim, config: inner.fingerprint()}
	h.Write(appendFloats(own.append(nil), how.Norm, how.Damping, how.Bound))
	h.Sum(out.config[:0])
	return out, nil
}

// Query asks for moments first, and then what the method asks; its steps are counted from 2.
func (p *Precondition) Query() Query {
	if p.scales == nil {
		return Query{Step: 1, Moments: true}
	}
	q := p.inner.Query()
	q.Step++
	q.Scales = p.Scales()
	return q
}

// Scales returns a copy of the scales, nil before they are estimated.
func (p *Precondition) Scales() []float64 { return slices.Clone(p.scales) }

// Step makes scales of the moments, or is the method's.
func (p *Precondition) Step(e Estimate) error {
	if p.scales != nil {
		return p.inner.Step(e)
	}
	if err := checkEstimate(e, p.how.Dim); err != nil {
		return err
	}
	scales, err := p.how.Scales(e.Gradient, math.Sqrt(e.PrivacyVariance+e.RoundingVariance))
	if err != nil {
		return fmt.Errorf("step: %w", err)
	}
	p.scales = scales
	return nil
}

// Skip is the method's. Moments cannot be passed over: their users answer one round, and others can be asked.
func (p *Precondition) Skip() error {
	if p.scales == nil {
		return fmt.Errorf("step: the moments cannot be passed over")
	}
	return p.inner.Skip()
}

// Done reports whether the method is done.
func (p *Precondition) Done() bool { return p.scales != nil && p.inner.Done() }

// Model returns the method's, in the scaled coordinates; before there are scales it is the start.
func (p *Precondition) Model() []float64 { return p.inner.Model() }

func (p *Precondition) position() uint64 { return uint64(bit(p.scales != nil)) + p.inner.position() }

func (p *Precondition) fingerprint() [sha256.Size]byte { return p.config }

func (p *Precondition) header() header {
	return header{method: methodMoments, dim: p.how.Dim, count: uint64(bit(p.scales != nil)), config: p.config}
}

// MarshalBinary returns the state, see learner.Algorithm.
func (p *Precondition) MarshalBinary() ([]byte, error) {
	inner, err := p.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return append(appendFloats(p.header().append(nil), p.scales...), inner...), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *Precondition) UnmarshalBinary(data []byte) error {
	h, rest, err := readHeader(data, p.header())
	if err != nil {
		return err
	}
	var scales []float64
	switch {
	case h.count > 1 || h.other != 0:
		return fmt.Errorf("%w: %d rounds of moments, %d passed over", ErrState, h.count, h.other)
	case h.count == 1 && len(rest) < 8*h.dim:
		return fmt.Errorf("%w: %d bytes do not hold %d scales", ErrState, len(data), h.dim)
	case h.count == 1:
		scales, rest = floats(rest[:8*h.dim]), rest[8*h.dim:]
		if err := p.how.CheckScales(scales); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	before, err := p.inner.MarshalBinary()
	if err != nil {
		return err
	}
	if err := p.inner.UnmarshalBinary(rest); err != nil {
		return err
	}
	if scales == nil && p.inner.position() > 0 {
		if err := p.inner.UnmarshalBinary(before); err != nil {
			panic(fmt.Sprintf("method: a state that was written is not read: %v", err))
		}
		return fmt.Errorf("%w: the method moved before there were moments", ErrState)
	}
	p.scales = scales
	return nil
}

// Unscaled returns a model in the coordinates of the features as they are, which gives an event the score that the model gives it in
// the scaled ones where these are not longer than their bound. It is for blocks of that many parameters each, intercept included. A
// model without scales is returned as it is.
func Unscaled(model, scales []float64, block int) []float64 {
	if scales == nil {
		return model
	}
	out := slices.Clone(model)
	for one := range slices.Chunk(out, block) {
		for j, s := range scales {
			one[j] *= s
		}
	}
	return out
}
