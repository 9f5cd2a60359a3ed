package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// Config fixes a simulated run.
type Config struct {
	Plan     learner.Plan
	Loss     convex.Loss
	Examples []convex.Example // one a user, at least Plan.Users; which of them take part, and when, follows from the seed
	Seed     uint64
	// Exact runs the same method on the exact means of the clipped gradients: the non-private one-pass baseline.
	Exact bool
	// OnRound, if not nil, is called after every step.
	OnRound func(Round)
}

// A Round is what an observer is told after a step.
type Round struct {
	Step, Steps uint64
	Users       uint64           // of this round
	Model       func() []float64 // as of now; a copy, only valid during the call
}

// Result is what a run gives.
type Result struct {
	Model  []float64
	Rounds uint64
	Users  uint64 // in all rounds
	State  []byte // of the method at its end
}

// Run takes every planned step. It stops early with the context's error.
func Run(ctx context.Context, c Config) (Result, error) {
	r, err := newRun(c)
	if err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	for !r.method.Done() {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if err := r.round(); err != nil {
			return Result{}, fmt.Errorf("simulate: step %d: %w", r.rounds+1, err)
		}
	}
	state, err := r.method.MarshalBinary()
	if err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	return Result{Model: r.method.Model(), Rounds: r.rounds, Users: r.users, State: state}, nil
}

type run struct {
	Config
	method learner.Algorithm
	oracle oracle
	order  []int32 // examples in the order in which they take part
	rounds uint64
	users  uint64
}

// An oracle answers a query with a cohort.
type oracle interface {
	mean(step uint64, point []float64, cohort []int32) (learner.Estimate, error)
}

func newRun(c Config) (*run, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	method, err := learner.New(c.Plan)
	if err != nil {
		return nil, err
	}
	out := &run{Config: c, method: method, order: make([]int32, len(c.Examples))}
	for i := range out.order {
		out.order[i] = int32(i)
	}
	rand.New(Entropy(c.Seed, "order")).Shuffle(len(out.order), func(i, j int) {
		out.order[i], out.order[j] = out.order[j], out.order[i]
	})
	users := devices{loss: c.Loss, examples: c.Examples, clip: c.Plan.ClipNorm, vector: make([]float64, c.Plan.Dim+c.Plan.ExtraDim), dim: c.Plan.Dim}
	if c.Exact {
		out.oracle = exact{users}
		return out, nil
	}
	params, err := c.Plan.Params()
	if err != nil {
		return nil, err
	}
	encoder, err := randomizer.NewVectorSum(params, Entropy(c.Seed, "reports"))
	if err != nil {
		return nil, err
	}
	out.oracle = &mixed{devices: users, plan: c.Plan, params: params, encoder: encoder, seed: c.Seed}
	return out, nil
}

func (c Config) validate() error {
	if c.Loss == nil {
		return fmt.Errorf("loss: missing")
	}
	features := c.Plan.Dim / c.Loss.Parameters(1)
	if c.Loss.Parameters(features) != c.Plan.Dim {
		return fmt.Errorf("dim: %d is no dimension of the %s loss", c.Plan.Dim, c.Loss.Name())
	}
	have := uint64(len(c.Examples))
	if have > math.MaxInt32 {
		return fmt.Errorf("examples: %d, want at most %d", have, math.MaxInt32)
	}
	if c.Plan.Cohort < 1 || c.Plan.Rounds < 1 || c.Plan.Rounds > have || c.Plan.Cohort > have || c.Plan.LastCohort > have ||
		(c.Plan.Rounds-1)*c.Plan.Cohort+c.Plan.LastCohort > have {
		return fmt.Errorf("examples: %d are too few for %d rounds of %d and %d in the last", have, c.Plan.Rounds, c.Plan.Cohort, c.Plan.LastCohort)
	}
	for i, e := range c.Examples {
		if err := e.Validate(features); err != nil {
			return fmt.Errorf("example %d: %w", i, err)
		}
		if err := c.Loss.CheckLabel(e.Label); err != nil {
			return fmt.Errorf("example %d: %w", i, err)
		}
	}
	return nil
}

func (r *run) round() error {
	q := r.method.Query()
	n := r.Plan.CohortOf(q.Step)
	estimate, err := r.oracle.mean(q.Step, q.Point, r.order[r.users:r.users+n])
	if err != nil {
		return err
	}
	if err := r.method.Step(estimate); err != nil {
		return err
	}
	r.rounds++
	r.users += n
	if r.OnRound != nil {
		r.OnRound(Round{Step: q.Step, Steps: r.Plan.Rounds, Users: n, Model: r.method.Model})
	}
	return nil
}

// reportID gives user i of a round an id; the mixer only asks that they differ.
func reportID(step, i uint64) (id shuffle.ReportID) {
	binary.LittleEndian.PutUint64(id[:], step)
	binary.LittleEndian.PutUint64(id[8:], i)
	return id
}
