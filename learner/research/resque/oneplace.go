package resque

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
)

// OnePlace returns both algorithms as methods of one place, for data that need no protection.
func OnePlace() []oneplace.Method {
	out := []oneplace.Method{{Name: BallAccel, Source: "Carmon et al. 2023, Theorem 1 (docs/proofs/resque.md)"},
		{Name: FixedLambda, Source: "acceleration at a fixed lambda, Theorem F of docs/proofs/resque.md"}}
	for i := range out {
		name := out[i].Name
		out[i].Public, out[i].OnRecords, out[i].Rows = true, true, true
		out[i].Least = func(oneplace.Problem) int { return 1 }
		out[i].Plan = func(p oneplace.Problem) (*oneplace.Plan, error) { return onePlace(name, p) }
	}
	return out
}

// kappa is L R, the clip norm times the radius, divided by the default gap.
const kappa = 20

// onePlace plans an algorithm for rows of which those are left out that do not fit. Its draws are the same in each
// run: nothing here is secret.
func onePlace(algorithm string, p oneplace.Problem) (*oneplace.Plan, error) {
	set, gap := p.Declared, p.Effort.Gap
	switch {
	case set.Kind != "ball":
		return nil, fmt.Errorf("%s: model.set %s: it is for models in a ball", algorithm, set.Kind)
	case p.Ridge > 0:
		return nil, fmt.Errorf("%s: model.ridge %v: it is for losses without one; model.radius bounds the model", algorithm,
			p.Ridge)
	case p.Effort.Slack != 0 && !(p.Effort.Slack > 0 && p.Effort.Slack <= math.MaxFloat64):
		return nil, fmt.Errorf("--slack %v: want a finite number > 0", p.Effort.Slack)
	case !(gap >= 0) || math.IsInf(gap, 1):
		return nil, fmt.Errorf("--gap %v: want a finite number > 0", gap)
	case gap == 0:
		gap = p.Lipschitz * set.Radius / kappa
	}
	if _, err := newSolver(p.Effort.Solver); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return &oneplace.Plan{Phases: 1, OnRecords: true, Bound: math.Inf(1), // the release says what is proved of it
		Fit: func(ctx context.Context, people []oneplace.Person, _ rand.Source) (oneplace.Release, error) {
			var rows []convex.Example
			for _, one := range people {
				for _, e := range one {
					if e.Validate(p.Features) == nil && p.Loss.CheckLabel(e.Label) == nil {
						rows = append(rows, e)
					}
				}
			}
			oracle, err := NewRows(p.Loss, rows, p.Features, p.Lipschitz)
			if err != nil {
				return oneplace.Release{}, err
			}
			r, err := Minimize(ctx, Problem{Oracle: oracle, Dim: p.Dim, L: p.Lipschitz, R: set.Radius},
				Config{Algorithm: algorithm, Gap: gap, Workers: p.Effort.Workers, Solver: p.Effort.Solver, Slack: p.Effort.Slack})
			return oneplace.Release{Model: r.Model, Phase: 1, Depth: r.Depth, Queries: r.Queries, Largest: r.Largest,
				Bound: r.Bound}, err
		}}, nil
}
