package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// PSGD is private projected stochastic gradient descent, Algorithm 3 of Cheu, Joseph, Mao, Peng, Shuffle Private
// Stochastic Convex Optimization, ICLR 2022, for convex Lipschitz losses:
//
//	theta_t = Pi(theta_{t-1} - eta gbar_t),   gbar_t taken at theta_{t-1},   t = 1 .. T
//
// (the text prints a plus sign; a descent step is meant). Its model is the average of theta_0 .. theta_{T-1}. With a
// modulus of strong convexity mu the t-th of them has the weight (1 - mu eta)^-(t+1) (Lowy, Razaviyayn, Private
// Federated Learning Without a Trusted Server, ICLR 2023, Theorem D.1, after Stich 2019).
//
// The fully interactive PGD, Algorithm 5 of the paper, is the same recursion with all users in each of the T rounds,
// and therefore another step size.
type PSGD struct {
	descent
	eta, mu float64
}

// PSGDConfig configures PSGD and PGD. It is a Stage of Restarts.
type PSGDConfig struct {
	Dim      int        // length of theta
	Set      convex.Set // constraint set
	Start    []float64  // theta_0 in Set; nil means Set's own
	Steps    uint64     // T
	StepSize float64    // eta > 0, in units of theta per unit of gradient; PSGDStepSize minimises the bound
	Ridge    float64    // lambda >= 0 of the term (lambda/2)||theta||^2, whose gradient is added to every estimate
	Mu       float64    // modulus of strong convexity, >= 0 and below 1/StepSize; 0 has equal weights
}

// NewPSGD returns the method at its start. The error names the field that does not fit.
func NewPSGD(c PSGDConfig) (*PSGD, error) {
	if err := validateStepSize(c.StepSize); err != nil {
		return nil, fmt.Errorf("psgd: %w", err)
	}
	if !(c.Mu >= 0 && float64(c.Mu*c.StepSize) < 1) {
		return nil, fmt.Errorf("psgd: mu: %v, want a number of at least 0 and below 1/step size, %v", c.Mu, 1/c.StepSize)
	}
	constants := []float64{c.StepSize}
	if c.Mu > 0 {
		constants = append(constants, c.Mu)
	}
	b, err := newBase(methodPSGD, settings{dim: c.Dim, set: c.Set, start: c.Start, steps: c.Steps, ridge: c.Ridge},
		constants...)
	if err != nil {
		return nil, fmt.Errorf("psgd: %w", err)
	}
	return &PSGD{descent: newDescent(b), eta: c.StepSize, mu: c.Mu}, nil
}

func (c PSGDConfig) length() uint64 { return c.Steps }

// Begin returns the method of one stage, see Stage.
func (c PSGDConfig) Begin(start []float64) (Method, error) {
	c.Start = start
	return NewPSGD(c)
}

// Step takes the descent step and moves the average.
func (p *PSGD) Step(e Estimate) error { return p.descend(e, p.eta, p.points()) }

// points returns the sum of the weights of the points queried so far, the current one included, divided by the current
// one's weight. With equal weights it is their number.
func (p *PSGD) points() float64 {
	n, share := float64(p.taken+1), float64(p.mu*p.eta)
	if share == 0 {
		return n
	}
	return -math.Expm1(float64(n*math.Log1p(-share))) / share
}

// descent is projected gradient descent with an average of the points queried, up to the step size and the weights.
type descent struct {
	base
	theta []float64 // theta_t
	mean  []float64 // of theta_0 .. theta_{t-1}; the start while t = 0
}

func newDescent(b base) descent {
	return descent{base: b, theta: slices.Clone(b.start), mean: slices.Clone(b.start)}
}

// Query returns the query for the gradient at theta_{t-1}.
func (p *descent) Query() Query { return p.query(slices.Clone(p.theta)) }

// Model returns the average of the points queried so far, the start before the first step.
func (p *descent) Model() []float64 { return slices.Clone(p.mean) }

// descend takes a step of size eta, and gives the queried point the weight 1/share in the average, 1 at first.
func (p *descent) descend(e Estimate, eta, share float64) error {
	if err := p.validate(e); err != nil {
		return err
	}
	next := p.gradient(e, p.theta)
	for i, g := range next {
		next[i] = p.theta[i] - float64(eta*g)
	}
	if !finite(next) {
		return errOverflow()
	}
	p.taken++
	for i, x := range p.theta {
		p.mean[i] += (x - p.mean[i]) / share
	}
	// Rounding can put the average of points of the set just outside.
	p.set.Project(p.mean, p.mean)
	p.set.Project(p.theta, next)
	return nil
}

// MarshalBinary returns the state, see learner.Algorithm.
func (p *descent) MarshalBinary() ([]byte, error) { return p.encode(p.theta, p.mean), nil }

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *descent) UnmarshalBinary(data []byte) error {
	theta, mean, err := p.decode(data)
	if err != nil {
		return err
	}
	p.theta, p.mean = theta, mean
	return nil
}

func validateStepSize(eta float64) error {
	if !(eta > 0) || math.IsInf(eta, 0) {
		return fmt.Errorf("step size: %v, want a finite number above 0", eta)
	}
	return nil
}
