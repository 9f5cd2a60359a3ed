package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// PAGD is private accelerated gradient descent, Algorithm 4 of Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic
// Convex Optimization, ICLR 2022, for convex smooth losses: accelerated stochastic approximation (AC-SA) of Ghadimi &
// Lan 2012 with their step-size policy, whose proof is standard,
//
//	alpha_t = 2/(t+1),   eta_t = 4v/(t(t+1)),   v >= 2 beta,   t = 1 .. T.
//
// Mu > 0 is the modulus of a strongly convex objective; at mu = 0 the step is theta_{t+1} = Pi(theta_t - t/(2v)
// gbar_t). Its model is the aggregate. A skipped step does not advance t.
//
// APGD is the same recursion with the same users, or silos, in every round (Lowy, Razaviyayn, Private Federated
// Learning Without a Trusted Server, ICLR 2023, Theorem 4.1).
type PAGD struct {
	base
	v, mu float64
	prox  []float64 // theta_t, the centre of the next prox step
	ag    []float64 // the aggregate
}

// PAGDConfig configures PAGD and APGD. It is a Stage of Restarts.
type PAGDConfig struct {
	Dim   int        // length of theta
	Set   convex.Set // constraint set
	Start []float64  // theta_1 in Set; nil means Set's own
	Steps uint64     // T
	V     float64    // v > 0, at least twice the smoothness; PAGDCurvature minimises the bound
	Mu    float64    // modulus of strong convexity, >= 0
	Ridge float64    // lambda >= 0, see PSGDConfig; Mu may be up to lambda, or 0 to ignore it
	// Interactive reports whether the same users answer every round. The method is then APGD, whose states differ from
	// PAGD's.
	Interactive bool
}

// NewPAGD returns the method at its start. The error names the field that does not fit.
func NewPAGD(c PAGDConfig) (*PAGD, error) {
	if !(c.V > 0) || math.IsInf(c.V, 0) {
		return nil, fmt.Errorf("pagd: v: %v, want a finite number above 0", c.V)
	}
	if !(c.Mu >= 0) || math.IsInf(c.Mu, 0) {
		return nil, fmt.Errorf("pagd: mu: %v, want a finite number of at least 0", c.Mu)
	}
	name := byte(methodPAGD)
	if c.Interactive {
		name = methodAPGD
	}
	b, err := newBase(name, settings{dim: c.Dim, set: c.Set, start: c.Start, steps: c.Steps, ridge: c.Ridge}, c.V, c.Mu)
	if err != nil {
		return nil, fmt.Errorf("pagd: %w", err)
	}
	return &PAGD{base: b, v: c.V, mu: c.Mu, prox: slices.Clone(b.start), ag: slices.Clone(b.start)}, nil
}

func (c PAGDConfig) length() uint64 { return c.Steps }

// Begin returns the method of one stage, see Stage.
func (c PAGDConfig) Begin(start []float64) (Method, error) {
	c.Start = start
	return NewPAGD(c)
}

// Query returns the query for the gradient at theta^md_t, a convex combination of the aggregate and the prox centre.
func (p *PAGD) Query() Query {
	md := make([]float64, len(p.prox))
	p.middle(md, p.taken+1)
	return p.query(md)
}

// Model returns the aggregate.
func (p *PAGD) Model() []float64 { return slices.Clone(p.ag) }

// schedule returns alpha_t and eta_t.
func (p *PAGD) schedule(step uint64) (alpha, eta float64) {
	t := float64(step)
	return 2 / (t + 1), 4 * p.v / (t * (t + 1))
}

func (p *PAGD) middle(dst []float64, step uint64) {
	alpha, eta := p.schedule(step)
	den := eta + float64((1-float64(alpha*alpha))*p.mu)
	a := (1 - alpha) * (p.mu + eta) / den
	b := alpha * (float64((1-alpha)*p.mu) + eta) / den
	for i := range dst {
		dst[i] = float64(a*p.ag[i]) + float64(b*p.prox[i])
	}
	// Rounding can put a combination of two points of the set outside it, and devices refuse such a point.
	p.set.Project(dst, dst)
}

// Step takes the prox step and moves the aggregate.
func (p *PAGD) Step(e Estimate) error {
	if err := p.validate(e); err != nil {
		return err
	}
	t := p.taken + 1
	alpha, eta := p.schedule(t)
	next := make([]float64, len(p.prox))
	p.middle(next, t)
	gradient := p.gradient(e, next)
	pull, hold, den := alpha*p.mu, float64((1-alpha)*p.mu)+eta, p.mu+eta
	for i, g := range gradient {
		next[i] = (float64(pull*next[i]) + float64(hold*p.prox[i]) - float64(alpha*g)) / den
	}
	if !finite(next) {
		return errOverflow()
	}
	p.taken = t
	p.set.Project(p.prox, next)
	for i, w := range p.prox {
		p.ag[i] = float64(alpha*w) + float64((1-alpha)*p.ag[i])
	}
	p.set.Project(p.ag, p.ag)
	return nil
}

// MarshalBinary returns the state, see learner.Algorithm.
func (p *PAGD) MarshalBinary() ([]byte, error) { return p.encode(p.prox, p.ag), nil }

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *PAGD) UnmarshalBinary(data []byte) error {
	prox, ag, err := p.decode(data)
	if err != nil {
		return err
	}
	p.prox, p.ag = prox, ag
	return nil
}
