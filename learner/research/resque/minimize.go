package resque

import (
	"cmp"
	"context"
	"fmt"
	"math"
)

// A Problem is to minimize a convex function over the ball of radius R around the origin.
type Problem struct {
	Oracle Oracle
	Dim    int     // d
	L      float64 // E||g||^2 <= L^2 for every answer g, at every point of R^d: finite, above 0
	R      float64 // of the points that the result is compared with: finite, above 0
}

// The algorithms.
const (
	FixedLambda = "fixed-lambda" // one round a step, proved with every constant: Theorem F of docs/proofs/resque.md
	BallAccel   = "ball-accel"   // Theorem 1 of the paper: fewer rounds for small gaps, many more queries
)

// Config holds the settings of Minimize.
type Config struct {
	Algorithm string // FixedLambda, which "" means, or BallAccel
	// Gap bounds the gap of the result x: E f(x) - min of f over the ball. Above 0, in units of f. Half of it
	// is for smoothing.
	Gap  float64
	Seed [32]byte // of the draws. Equal seeds give equal results, whatever Workers is
	// Workers is the number of goroutines that query the oracle; 0 means 1. With one there is no goroutine besides the
	// caller's.
	Workers int

	Solver string // EpochSGD, which "" means, or ACSA
	// Slack multiplies the errors that subproblems may have; 0 for 1. The proofs are for 1: above it FixedLambda
	// has a weaker bound, BallAccel none.
	Slack float64
}

// A Result holds the point that a run found, and its cost.
type Result struct {
	Model   []float64
	Depth   int64   // rounds of queries, each known before the first of it is asked
	Queries int64   // in all rounds
	Largest int64   // queries of the largest round
	Bound   float64 // of E f(Model) - min of f over the ball; +Inf where nothing is proved
}

// Minimize runs an algorithm. Where L R <= Gap the origin is the result, of no queries. It returns an error
// if the Config does not fit, and errors of the oracle and of the context.
func Minimize(ctx context.Context, of Problem, c Config) (Result, error) {
	b, s, err := c.settle(of)
	if err != nil {
		return Result{}, err
	}
	if of.L*of.R <= c.Gap {
		return Result{Model: make([]float64, of.Dim), Bound: of.L * of.R}, nil
	}
	p := &pool{oracle: of.Oracle, dim: of.Dim, workers: c.Workers, seed: c.Seed}
	smoothing := of.L * b.rho * math.Sqrt(float64(of.Dim))
	var out Result
	switch c.Algorithm {
	case "", FixedLambda:
		plan, err := planFixed(b, of.R, c.Gap-smoothing, c.slack(), s)
		if err != nil {
			return Result{}, err
		}
		out.Bound = smoothing + plan.bound
		if out.Model, err = plan.run(ctx, p, b, of.R, s); err != nil {
			return Result{}, err
		}
	case BallAccel:
		plan := planBallAccel(b, of.R, c.Gap-smoothing)
		if other := plan.unsearched(); c.slack() == 1 && other.queries(s) < plan.queries(s) {
			plan = other
		}
		o := sampled{p, b, s, max(1, int(float64(plan.copies())/c.slack())), c.slack()}
		var counts [3]int
		if out.Model, counts, err = plan.run(ctx, of.Dim, o); err != nil {
			return Result{}, err
		}
		if out.Bound = c.Gap; c.slack() > 1 || counts[uncertified] > 0 { // the proof covers only strengths that were found
			out.Bound = math.Inf(1)
		}
	default:
		return Result{}, fmt.Errorf("algorithm: %q, want %s or %s", c.Algorithm, FixedLambda, BallAccel)
	}
	out.Depth, out.Queries, out.Largest = p.depth, p.queries, p.mostInRound
	return out, nil
}

// settle checks problem and configuration, and returns the ball and the solver of the subproblems.
func (c Config) settle(of Problem) (ball, solver, error) {
	if of.Oracle == nil || of.Dim < 1 {
		return ball{}, nil, fmt.Errorf("problem: want an oracle, and a dimension of at least 1")
	}
	for _, v := range [...]struct {
		name  string
		value float64
	}{{"L", of.L}, {"R", of.R}, {"gap", c.Gap}, {"slack", c.slack()}} {
		if !(v.value > 0) || math.IsInf(v.value, 0) {
			return ball{}, nil, fmt.Errorf("%s: %v, want a finite number above 0", v.name, v.value)
		}
	}
	if c.Workers < 0 {
		return ball{}, nil, fmt.Errorf("workers: %d, want at least 1, or 0 for one", c.Workers)
	}
	s, err := newSolver(c.Solver)
	if err != nil {
		return ball{}, nil, err
	}
	rho := c.Gap / 2 / of.L / math.Sqrt(float64(of.Dim))
	return ball{longest: of.L, rho: rho, r: min(rho, of.R)}, s, nil
}

func (c Config) slack() float64 { return cmp.Or(c.Slack, 1) }
