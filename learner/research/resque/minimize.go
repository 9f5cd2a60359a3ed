package resque

import (
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

	Solver string  // EpochSGD, which "" means, or ACSA
	Ratio  float64 // s = r/rho, of the ball's radius to the smoothing; 0 for 1. Smaller: more rounds, fewer queries
	// Slack multiplies the errors that subproblems may have; 0 for 1. The proofs are for 1: above it FixedLambda
	// has a weaker bound, BallAccel none.
	Slack float64
	// PaperLambda has BallAccel's least strength as the paper has it, log^2(LR/Gap) times larger: fewer queries in
	// each of more steps.
	PaperLambda bool
	Watch       func(depth, queries int64) // called after every round; may be nil
}

// A Result holds the point that a run found, and its cost.
type Result struct {
	Model   []float64
	Depth   int64   // rounds of queries, each known before the first of it is asked
	Queries int64   // in all rounds
	Largest int64   // queries of the largest round
	Work    int64   // Queries times d: multiplications in the order of
	Bound   float64 // of E f(Model) - min of f over the ball; +Inf where nothing is proved
	// Steps of BallAccel: of a strength that the line search found, of the least strength, and those at which it
	// found none, which have no share in the proof.
	Searched, Least, Uncertified int
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
	p := &pool{oracle: of.Oracle, dim: of.Dim, workers: c.Workers, seed: c.Seed, watch: c.Watch}
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
		plan := planBallAccel(b, of.R, c.Gap-smoothing, c.PaperLambda)
		if other := plan.unsearched(); c.slack() == 1 && other.queries(s) < plan.queries(s) {
			plan = other
		}
		o := sampled{p, b, s, max(1, int(float64(plan.copies())/c.slack())), c.slack()}
		var counts [3]int
		if out.Model, counts, err = plan.run(ctx, of.Dim, o); err != nil {
			return Result{}, err
		}
		out.Searched, out.Least, out.Uncertified = counts[searched], counts[least], counts[uncertified]
		if out.Bound = c.Gap; c.slack() > 1 || out.Uncertified > 0 {
			out.Bound = math.Inf(1)
		}
	default:
		return Result{}, fmt.Errorf("algorithm: %q, want %s or %s", c.Algorithm, FixedLambda, BallAccel)
	}
	p.end()
	out.Depth, out.Queries, out.Largest, out.Work = p.depth, p.queries, p.mostInRound, p.queries*int64(of.Dim)
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
	}{{"L", of.L}, {"R", of.R}, {"gap", c.Gap}, {"ratio", c.ratio()}, {"slack", c.slack()}} {
		if !(v.value > 0) || math.IsInf(v.value, 0) {
			return ball{}, nil, fmt.Errorf("%s: %v, want a finite number above 0", v.name, v.value)
		}
	}
	switch {
	case c.ratio() > 3:
		return ball{}, nil, fmt.Errorf("ratio: %v, want at most 3: weights have a second moment of exp(ratio^2)", c.ratio())
	case c.Workers < 0:
		return ball{}, nil, fmt.Errorf("workers: %d, want at least 1, or 0 for one", c.Workers)
	}
	s, err := newSolver(c.Solver)
	if err != nil {
		return ball{}, nil, err
	}
	rho := c.Gap / 2 / of.L / math.Sqrt(float64(of.Dim))
	return ball{longest: of.L, rho: rho, r: min(c.ratio()*rho, of.R)}, s, nil
}

func (c Config) ratio() float64 { return orOne(c.Ratio) }

func (c Config) slack() float64 { return orOne(c.Slack) }

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}
