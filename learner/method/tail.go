package method

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// tail is gradient descent with the mean of its last iterates, weighted by the users of their rounds:
//
//	theta_t = Pi(theta_{t-1} - eta gbar_t),   gbar_t taken at theta_{t-1},   t = 1 .. T
//
// Its model is the mean of theta_t over the last average steps; before these it is theta_t.
type tail struct {
	descent
	eta     float64
	average uint64
	users   float64 // of the rounds in the mean
}

// tailConfig configures Tail.
type tailConfig struct {
	dim      int
	set      convex.Set
	start    []float64 // theta_0 in Set; nil means Set's own
	steps    uint64    // T
	stepSize float64   // eta > 0
	average  uint64    // 1 to T
}

// newTail returns the method at its start. The error names the field that does not fit.
func newTail(c tailConfig) (*tail, error) {
	if err := validateStepSize(c.stepSize); err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	if c.average < 1 || c.average > c.steps {
		return nil, fmt.Errorf("tail: average: %d, want 1 to %d", c.average, c.steps)
	}
	b, err := newBase(methodTail, settings{dim: c.dim, set: c.set, start: c.start, steps: c.steps}, c.stepSize,
		float64(c.average))
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	return &tail{descent: newDescent(b), eta: c.stepSize, average: c.average}, nil
}

// Step takes the descent step and moves the mean.
func (p *tail) Step(e Estimate) error {
	mean := slices.Clone(p.mean)
	if err := p.descend(e, p.eta, 1); err != nil {
		return err
	}
	if p.position()+p.average <= p.steps {
		copy(p.mean, p.theta)
		return nil
	}
	m := float64(e.Users)
	p.users += m
	for i, x := range p.theta {
		p.mean[i] = mean[i] + (x-mean[i])*(m/p.users)
	}
	p.set.Project(p.mean, p.mean)
	return nil
}

// MarshalBinary returns the state, see learner.Algorithm.
func (p *tail) MarshalBinary() ([]byte, error) {
	return AppendFloats(p.encode(p.theta, p.mean), p.users), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *tail) UnmarshalBinary(data []byte) error {
	if len(data) < 8 {
		return fmt.Errorf("%w: %d bytes", ErrState, len(data))
	}
	users := Floats(data[len(data)-8:])[0]
	if !(users >= 0 && users <= 1<<60) {
		return fmt.Errorf("%w: %v users in a mean", ErrState, users)
	}
	theta, mean, err := p.decode(data[:len(data)-8])
	if err != nil {
		return err
	}
	p.theta, p.mean, p.users = theta, mean, users
	return nil
}
