package resque

import (
	"context"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// subproblems solves the subproblems of BallAccel, min over ||x - y|| <= r of F(x) + (lambda/2)||x - y||^2,
// with minimizer xhat.
type subproblems interface {
	// Distance returns ||xhat - y|| within r/17: a line-search oracle, of which nothing but that is wanted.
	Distance(ctx context.Context, y []float64, lambda float64) (float64, error)
	// Solve returns a point whose gap is at most phi in expectation (a ball-optimization oracle), and one with mean
	// within bias/lambda of xhat and mean squared distance at most variance/lambda^2 (a stochastic proximal
	// oracle).
	Solve(ctx context.Context, y []float64, lambda, phi, bias, variance float64) (x, prox []float64, err error)
}

// A ballPlan is the outer loop of Theorem 1: accelerated proximal steps whose strength a line search keeps as small
// as the balls allow (Carmon et al. 2020; Asi et al. 2021), with the constants and the proof of
// docs/proofs/resque.md.
type ballPlan struct {
	ball
	radius, gap float64
	least, most float64 // strengths
	reach       float64 // bounds ||x - v|| and ||x - x*||, see docs/proofs/resque.md

	limit, probes int // of steps, and of distances in a step; 0: as many as the proof needs
}

func planBallAccel(b ball, radius, gap float64) ballPlan {
	out := ballPlan{ball: b, radius: radius, gap: gap, most: 2 * b.longest / b.r}
	kappa := b.longest * radius / gap
	out.least = min(out.balanced(), out.most)
	out.reach = 2*radius + 3*math.Sqrt(kappa*radius*b.r)
	return out
}

// balanced returns the least strength that has about as many steps of its own as of strengths that are searched.
func (f ballPlan) balanced() float64 {
	return f.gap / f.radius / f.radius * math.Pow(f.radius/f.r, 4./3)
}

// unsearched returns the plan with so large a least strength that no step needs another one: a minimizer is at most
// L/lambda from its centre. No distance is measured then; there are more steps.
func (f ballPlan) unsearched() ballPlan {
	f.least = max(f.least, f.longest/f.r/0.9)
	return f
}

// sure reports whether the minimizer of the least strength is within 0.9 r of any centre.
func (f ballPlan) sure() bool { return f.longest/f.least <= 0.9*f.r*(1+1e-12) }

// gapOf returns phi of a step of a strength: in all steps that are not searched phi adds up to less than 0.13 of the gap,
// as their number grows with the root of the least strength.
func (f ballPlan) gapOf(lambda float64, kind strength) float64 {
	phi := lambda * f.r * f.r / 41
	if kind == least {
		phi /= max(1, math.Pow(f.least/f.balanced(), 1.5))
	}
	return phi
}

// queries estimates the queries of all steps, if each is of the least strength and measures one distance where one has to.
func (f ballPlan) queries(s solver) float64 {
	cost := func(phi float64) float64 { n, _ := s.cost(f.ball, f.least, phi); return float64(n) }
	a := math.Sqrt(2 * f.radius * f.radius / f.gap / f.least) // of the last steps
	phi0, levels := multilevel(f.least, f.gap/16/f.radius, f.gap/2/a)
	each := cost(f.gapOf(f.least, least)) + cost(phi0)
	for j := 1; j <= levels; j++ {
		each += math.Ldexp(cost(math.Ldexp(phi0, -j))+cost(math.Ldexp(phi0, 1-j)), -j)
	}
	if !f.sure() {
		each += float64(f.copies()) * cost(f.least*f.r*f.r/5780)
	}
	_, steps := f.steps()
	return steps * each
}

// steps bounds the expected number of steps, of a strength that is searched and of the least.
func (f ballPlan) steps() (searched, least float64) {
	l := math.Log(4*f.longest*f.radius/f.gap*f.radius/f.r) / 2
	return 1 + math.Pow(2*math.Sqrt(82)*f.radius/f.r*l, 2./3), 1 + 2*math.Sqrt(2*f.least*f.radius*f.radius/f.gap)
}

// copies returns the number of copies of every distance: with it all of them are within r/17, except with a
// probability that costs a tenth of the gap. There are at most 4 sqrt(kappa R/r) + 1 steps of at most 4 +
// log2(log(most/least) (0.172 reach + r)/(0.18 r)) distances.
func (f ballPlan) copies() int {
	steps := 4*math.Sqrt(f.longest*f.radius/f.gap*f.radius/f.r) + 1
	probes := 4 + math.Log2(max(1, math.Log(f.most/f.least)*(0.172*f.reach+f.r)/(0.18*f.r)))
	return copiesFor(f.gap/10/f.longest/f.reach/steps/probes, 0.9)
}

// An Outer is BallAccel's outer loop for callers that solve the subproblems themselves. It minimises an L-Lipschitz F,
// in comparison with the points of norm at most Radius.
type Outer struct {
	Lipschitz, Radius, Ball, Gap float64 // L, R, r and the gap, all above 0
	// at most so many steps, of at most so many distances each; 0: as many as the proof needs
	Steps, Probes int
}

func (o Outer) plan() ballPlan {
	f := planBallAccel(ball{longest: o.Lipschitz, r: o.Ball}, o.Radius, o.Gap)
	f.limit, f.probes = o.Steps, o.Probes
	return f
}

// Strengths returns the smallest and the largest lambda of the subproblems.
func (o Outer) Strengths() (least, most float64) {
	f := o.plan()
	return f.least, f.most
}

// Run takes steps from the origin. It returns where they end, and the number of those whose strength was searched,
// was the least, and was not found.
func (o Outer) Run(ctx context.Context, dim int, s subproblems) (x []float64, counts [3]int, err error) {
	return o.plan().run(ctx, dim, s)
}

// Kinds of strengths.
type strength int

const (
	searched    strength = iota // the minimizer is between 0.54 r and 0.96 r away
	least                       // of the least strength the minimizer is not at the edge
	uncertified                 // the line search ended between two strengths: the minimizer is not at the edge
)

// run takes steps until A >= 2 R^2/gap, after at most 4 sqrt(kappa R/r) + 1 steps, or until the limit; counts
// are by the kind of step.
func (f ballPlan) run(ctx context.Context, dim int, s subproblems) (x []float64, counts [3]int, err error) {
	x, v := make([]float64, dim), make([]float64, dim)
	var acc accelerator
	lambda := f.least
	for steps := 0; acc.a < 2*f.radius*f.radius/f.gap && (f.limit == 0 || steps < f.limit); steps++ {
		var kind strength
		lambda, kind, err = f.search(lambda, func(lambda float64) (float64, error) {
			_, y := acc.centre(x, v, lambda)
			return s.Distance(ctx, y, lambda)
		})
		if err != nil {
			return nil, counts, err
		}
		counts[kind]++
		a, y := acc.centre(x, v, lambda)
		next, prox, err := s.Solve(ctx, y, lambda, f.gapOf(lambda, kind), f.gap/16/f.radius, f.gap/2/a)
		if err != nil {
			return nil, counts, err
		}
		for i := range v {
			// half a step: what a whole one would leave of the gain is nothing
			v[i] -= float64(a / 2 * lambda * (y[i] - prox[i]))
		}
		convex.Clip(v, f.radius)
		x, acc.a = next, acc.a+a
	}
	return x, counts, nil
}
