package learner

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
// (the text prints a plus sign; a descent step is meant). Its model is the average of theta_0 .. theta_{T-1}.
type PSGD struct {
	geometry
	eta   float64
	taken uint64
	theta []float64 // theta_t
	mean  []float64 // of theta_0 .. theta_{t-1}; the start while t = 0
}

// PSGDConfig configures PSGD.
type PSGDConfig struct {
	Dim      int        // length of theta
	Set      convex.Set // constraint set
	Start    []float64  // theta_0 in Set; nil means the origin
	Steps    uint64     // T
	StepSize float64    // eta > 0, in units of theta per unit of gradient; PSGDStepSize is the best for the bound
}

// NewPSGD returns the method at its start. The error names the field that does not fit.
func NewPSGD(c PSGDConfig) (*PSGD, error) {
	g, err := newGeometry(c.Dim, c.Set, c.Start, c.Steps)
	if err != nil {
		return nil, fmt.Errorf("psgd: %w", err)
	}
	if !(c.StepSize > 0) || math.IsInf(c.StepSize, 0) {
		return nil, fmt.Errorf("psgd: step size: %v, want a finite number above 0", c.StepSize)
	}
	return &PSGD{geometry: g, eta: c.StepSize, theta: slices.Clone(g.start), mean: slices.Clone(g.start)}, nil
}

// Query asks for the gradient at theta_{t-1}.
func (p *PSGD) Query() Query {
	return Query{Step: min(p.taken+1, p.steps), Point: slices.Clone(p.theta)}
}

// Done reports whether T steps were taken.
func (p *PSGD) Done() bool { return p.taken == p.steps }

// Model returns the average of the points queried so far, the start before the first step.
func (p *PSGD) Model() []float64 { return slices.Clone(p.mean) }

// Step takes the descent step and moves the average.
func (p *PSGD) Step(e Estimate) error {
	if p.Done() {
		return errDone(p.steps)
	}
	if err := checkEstimate(e, len(p.theta)); err != nil {
		return err
	}
	next := make([]float64, len(p.theta))
	for i, g := range e.Gradient {
		next[i] = p.theta[i] - float64(p.eta*g)
	}
	if !finite(next) {
		return errOverflow()
	}
	p.taken++
	for i, x := range p.theta {
		p.mean[i] += (x - p.mean[i]) / float64(p.taken)
	}
	// Rounding can put the average of points of the set just outside.
	p.set.Project(p.mean, p.mean)
	p.set.Project(p.theta, next)
	return nil
}

// MarshalBinary returns the state, see Algorithm.
func (p *PSGD) MarshalBinary() ([]byte, error) { return p.state().encode(), nil }

// UnmarshalBinary replaces the state, see Algorithm.
func (p *PSGD) UnmarshalBinary(data []byte) error {
	s, err := decode(data, p.state(), p.geometry)
	if err != nil {
		return err
	}
	p.taken, p.theta, p.mean = s.taken, s.first, s.second
	return nil
}

func (p *PSGD) state() state {
	return state{method: methodPSGD, steps: p.steps, taken: p.taken, radius: p.set.Radius(),
		constants: [2]float64{p.eta, 0}, first: p.theta, second: p.mean}
}

func errDone(steps uint64) error { return fmt.Errorf("step: all %d steps were taken", steps) }

func errOverflow() error {
	return fmt.Errorf("step: the update overflows; the estimate is far outside what the clip norm allows")
}

func finite(x []float64) bool {
	n := convex.Norm(x)
	return !math.IsNaN(n) && !math.IsInf(n, 0)
}
