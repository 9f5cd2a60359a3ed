package resque

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// maxRounds is more than any run has time for.
const maxRounds = 10_000_000

// A fixedPlan is acceleration with one strength lambda = L/r for all subproblems (Theorem F,
// docs/proofs/resque.md): a round a step, no line search and no multilevel estimator. In every round a solver
// approaches the minimum of the subproblem to a gap of phi, and fresh queries tell the gradient at what it returns.
type fixedPlan struct {
	lambda float64
	rounds int     // N
	phi    float64 // of a solve
	fresh  int64   // N_g, queries for the gradient
	solve  int64   // queries of a solve
	bound  float64 // of fhat(x_N) - fhat(x*) in expectation, for x* of norm at most R
}

// NextStep returns a = (1 + sqrt(1 + 4 lambda A))/(2 lambda), with which lambda a^2 = A + a.
func NextStep(lambda, total float64) float64 {
	return (1 + math.Sqrt(1+float64(4*lambda*total))) / (2 * lambda)
}

// An accelerator is the recursion of these steps.
type accelerator struct{ a float64 }

func (s accelerator) step(lambda float64) float64 { return NextStep(lambda, s.a) }

// centre returns the step a for a strength, and the centre (A x + a v)/(A + a).
func (s accelerator) centre(x, v []float64, lambda float64) (a float64, y []float64) {
	a = s.step(lambda)
	next := s.a + a
	y = make([]float64, len(x))
	for i := range y {
		y[i] = float64(s.a/next*x[i]) + float64(a/next*v[i])
	}
	return a, y
}

// planFixed finds the smallest N at which the distance costs at most half of the gap, and shares what is left
// between phi and N_g so that a round has few queries: solver and gradient cost c/p and c'/q queries for shares p
// and q of it, with c/c' = 32 (1+s)^2 for epochSGD.
//
// slack above 1 multiplies phi and divides N_g after that, and the bound says what is left of it.
func planFixed(b ball, radius, gap, slack float64, s solver) (fixedPlan, error) {
	out := fixedPlan{lambda: b.longest / b.r}
	var a accelerator
	var total float64 // S
	for radius*radius/2 > a.a*gap/2 {
		if out.rounds++; out.rounds > maxRounds {
			return fixedPlan{}, fmt.Errorf("more than %d rounds: ask for a larger gap", maxRounds)
		}
		a.a += a.step(out.lambda)
		total += a.a
	}
	if out.rounds == 0 {
		return out, nil
	}
	grow := 1 + b.r/b.rho
	perPhi, perVariance := grow*grow*total/a.a, total/(2*out.lambda*a.a) // what phi and sigma^2 add to the bound
	rest := gap - radius*radius/2/a.a
	share := 1 / (1 + 1/math.Sqrt(32*grow*grow))
	_, reached := s.cost(b, out.lambda, share*rest/perPhi)
	fresh := math.Ceil(b.variance() * perVariance / (rest - reached*perPhi))

	out.phi = share * rest / perPhi * slack
	out.fresh = int64(min(max(1, math.Ceil(fresh/slack)), maxCall))
	out.solve, reached = s.cost(b, out.lambda, out.phi)
	out.bound = radius*radius/2/a.a + reached*perPhi + b.variance()/float64(out.fresh)*perVariance
	return out, nil
}

// run takes the steps.
func (f fixedPlan) run(ctx context.Context, p *pool, b ball, radius float64, s solver) ([]float64, error) {
	x, v, gradient, total := make([]float64, p.dim), make([]float64, p.dim), make([]float64, p.dim), newSum(p.dim)
	var acc accelerator
	for range f.rounds {
		a, y := acc.centre(x, v, f.lambda)
		p.round()
		way, err := s.solve(ctx, p, b, y, f.lambda, f.phi)
		if err != nil {
			return nil, err
		}
		if err := p.gradient(ctx, gradient, y, way, b.rho, f.fresh, total); err != nil {
			return nil, err
		}
		for i, g := range gradient {
			v[i] -= float64(a * g)
		}
		convex.Clip(v, radius)
		x, acc.a = plus(y, way), acc.a+a
	}
	return x, nil
}

// gradient writes an estimate of the smoothed gradient at centre + v from n fresh queries around the centre.
func (p *pool) gradient(ctx context.Context, dst, centre, v []float64, rho float64, n int64, total sum) error {
	c, err := p.open(ctx, centre, rho, n)
	if err != nil {
		return err
	}
	defer c.close()
	return c.meanGradient(dst, v, n, total)
}
