package resque

import (
	"context"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/oneplace"
)

// A ball holds the numbers that all subproblems of a run share: for a centre y and a strength lambda,
//
//	min over ||v|| <= r of fhat(y + v) + (lambda/2) ||v||^2.
type ball struct {
	longest float64 // L
	rho, r  float64 // of the smoothing and of the ball
}

// variance returns the bound of E||w g||^2 in the ball.
func (b ball) variance() float64 { return secondMoment(b.r/b.rho) * b.longest * b.longest }

// A solver returns a point of a subproblem's ball that is in expectation within a gap of the minimum: a (phi,
// lambda)-ball optimization oracle (Definition 4). All queries of a solve are one call.
type solver interface {
	// cost returns the number of queries at accuracy phi, and the gap, at most phi, that they guarantee.
	cost(b ball, lambda, phi float64) (queries int64, gap float64)
	// solve returns the displacement v.
	solve(ctx context.Context, p *pool, b ball, centre []float64, lambda, phi float64) ([]float64, error)
}

// The names of solvers.
const (
	EpochSGD = oneplace.EpochSGD
	ACSA     = oneplace.ACSA
)

func newSolver(name string) (solver, error) {
	switch name {
	case "", EpochSGD:
		return epochSGD{}, nil
	case ACSA:
		return restarted{}, nil
	}
	return nil, fmt.Errorf("solver: %q, want %s or %s", name, EpochSGD, ACSA)
}

// plus returns centre + v.
func plus(centre, v []float64) []float64 {
	out := slices.Clone(centre)
	for i, u := range v {
		out[i] += u
	}
	return out
}
