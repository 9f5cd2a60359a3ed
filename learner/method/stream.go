package method

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// stream is PSGD without an end: it is never done, always has a current model, and its state does not grow.
//
//	theta_t = Pi(theta_{t-1} - eta_t gbar_t),   eta_t = eta               (constant)
//	                                            eta_t = eta sqrt(H/t)     (decaying)
//
// with eta the best step size for a horizon of H steps, D_0/(G sqrt H): the decaying steps are D_0/(G sqrt t). The
// model is the polynomial-decay average of the points queried, in which the t-th has weight 4/(t+3) against those
// before it (Shamir & Zhang, Stochastic gradient descent for non-smooth optimization, ICML 2013, with their eta = 3):
// about the mean of the last quarter of the points. With the constant step the weight stops falling after H points, so
// the model forgets at a rate of 4/(H+3) a step and follows a population that drifts, while the constant step bounds
// the loss against a moving optimum (Zinkevich, Online convex programming, ICML 2003, Theorem 2). With decaying steps
// it converges to an optimum that does not move, ever more slowly.
type stream struct {
	descent
	eta      float64
	horizon  float64
	decaying bool
}

// StreamConfig configures Stream. It may be the last Stage of Restarts.
type StreamConfig struct {
	Dim      int        // length of theta
	Set      convex.Set // constraint set
	Start    []float64  // theta_0 in Set; nil means Set's own
	Horizon  uint64     // H, the steps that StepSize is planned for
	StepSize float64    // eta > 0, in units of theta per unit of gradient; PSGDStepSize for H steps
	Decaying bool       // eta_t falls like 1/sqrt(t)
	Ridge    float64    // lambda >= 0, see PSGDConfig
}

// NewStream returns the method at its start. The error names the field that does not fit.
func NewStream(c StreamConfig) (*stream, error) {
	if err := validateStepSize(c.StepSize); err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	if c.Horizon < 1 || c.Horizon > MaxSteps {
		return nil, fmt.Errorf("stream: horizon: %d, want 1 to %d", c.Horizon, uint64(MaxSteps))
	}
	h := float64(c.Horizon)
	if math.IsInf(c.StepSize*math.Sqrt(h), 0) {
		return nil, fmt.Errorf("stream: step size: %v, want one whose product with sqrt(%d) is finite", c.StepSize, c.Horizon)
	}
	b, err := newBase(methodStream, settings{dim: c.Dim, set: c.Set, start: c.Start, endless: true, ridge: c.Ridge},
		c.StepSize, h, float64(bit(c.Decaying)))
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	return &stream{descent: newDescent(b), eta: c.StepSize, horizon: h, decaying: c.Decaying}, nil
}

func (c StreamConfig) length() uint64 { return 0 }

// Begin returns the method of one stage, see Stage.
func (c StreamConfig) Begin(start []float64) (Method, error) {
	c.Start = start
	return NewStream(c)
}

// Step takes the descent step and moves the average.
func (p *stream) Step(e Estimate) error {
	t, eta := float64(p.taken+1), p.eta
	age := t
	if p.decaying {
		eta *= math.Sqrt(p.horizon / t)
	} else {
		age = min(t, p.horizon)
	}
	return p.descend(e, eta, (age+3)/4)
}
