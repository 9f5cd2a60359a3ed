package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Config fixes a simulated run.
type Config struct {
	Plan *wire.Plan
	Loss convex.Loss
	// Score writes what a point scores on an event, as Plan.Scorecard says; wanted where there is one, and not called elsewhere.
	Score    func(dst, theta []float64, e convex.Example)
	Examples []convex.Example // one a user, at least as many as the plan's; which of them take part, and when, follows from the seed
	Seed     uint64
	// InOrder lets the users take part in the order of Examples, whatever the seed: a stream in time.
	InOrder bool
	// Exact runs the same method on the exact means of the clipped gradients: the non-private one-pass baseline.
	Exact bool
	// NoiseStd, if not nil, runs the method on exact means of the clipped gradients with Gaussian noise, as other trust models add: it
	// is the standard deviation of one coordinate of a mean of users reports in a phase, in the units of the gradient. The plan
	// needs no randomizer then.
	NoiseStd func(phase int, users uint64) float64
	// OnRound, if not nil, is called after every step.
	OnRound func(Round)
}

// A Round is what an observer is told after a step.
type Round struct {
	Step, Steps uint64           // Steps is the planned number; a continuous plan goes on after it
	Users       uint64           // of this round
	Cohort      []int32          // their indices in Examples; only valid during the call
	Model       func() []float64 // as of now; a copy, only valid during the call
	Point       []float64        // at which the cohort was asked; nil for moments
	Frame       *convex.Frame    // the coordinates of Point; nil: the declared ones
	// Validation is what the scores say so far; nil without scores.
	Validation *method.Validation
	Release    *shuffle.Release       // what the stage released; nil in runs without the randomizer
	State      func() ([]byte, error) // of the method after the step; only valid during the call
}

// Result is what a run gives.
type Result struct {
	Model  []float64
	Rounds uint64
	Users  uint64 // in all rounds
	State  []byte // of the method at its end
	// Validation is what the scores said; nil without scores.
	Validation *method.Validation
	// Learned is what the first cohorts of a practical plan taught; nil in a proved one.
	Learned *practical.Learned
}

// Run takes every planned step. A continuous plan it runs until the examples that are left do not fill a cohort. It stops early
// with the context's error.
func Run(ctx context.Context, c Config) (Result, error) {
	r, err := newRun(c)
	if err != nil {
		return Result{}, fmt.Errorf("simulate: %w", err)
	}
	for !r.over() {
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
	return Result{Model: r.method.Model(), Rounds: r.rounds, Users: r.users, State: state,
		Validation: learner.ValidationOf(r.method), Learned: learner.LearnedOf(r.method)}, nil
}

type run struct {
	Config
	method  learner.Algorithm
	oracles []oracle // by phase
	order   []int32  // examples in the order in which they take part
	begun   []uint64 // by phase: the users of the phases before it
	rounds  uint64
	users   uint64 // that took part, each counted once
	taken   uint64 // users of the present phase that answered, where each answers one round
	phase   int
}

// An oracle estimates what a query asks of a cohort.
type oracle interface {
	// mean returns the estimate, and what the stage released for it, nil where no stage mixed anything.
	mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error)
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
	if !c.InOrder {
		rand.New(Entropy(c.Seed, "order")).Shuffle(len(out.order), func(i, j int) {
			out.order[i], out.order[j] = out.order[j], out.order[i]
		})
	}
	var users uint64
	reports := Entropy(c.Seed, "reports")
	for i := range c.Plan.Phases {
		one, err := c.oracle(i, reports)
		if err != nil {
			return nil, err
		}
		out.oracles, out.begun = append(out.oracles, one), append(out.begun, users)
		users += c.Plan.Phases[i].Users
	}
	return out, nil
}

// oracle makes that of one phase; entropy is what devices draw from.
func (c Config) oracle(phase int, entropy rand.Source) (oracle, error) {
	of := report.Config{Features: c.features(), Loss: c.Loss, ClipNorm: c.Plan.ClipNorm, Practical: manifest.Practical(c.Plan)}
	if of.Scores = int(manifest.Gradients(c.Plan).GetMechanism().GetScores()); of.Scores > 0 {
		of.Score = c.Score
	}
	f := c.Plan.Phases[phase]
	of, err := of.Phase(report.Statistic(f.Statistic), f.Smoothing)
	if err != nil {
		return nil, err
	}
	if c.Exact || c.NoiseStd != nil {
		reports, err := report.NewExact(of)
		if err != nil {
			return nil, err
		}
		mean := exact{examples: c.Examples, reports: reports}
		if c.Exact {
			return mean, nil
		}
		return gaussian{exact: mean, std: c.NoiseStd, phase: phase, seed: c.Seed}, nil
	}
	params, err := manifest.Params(f.Mechanism)
	if err != nil {
		return nil, err
	}
	reports, err := report.New(of, params, entropy)
	if err != nil {
		return nil, err
	}
	return &mixed{examples: c.Examples, phase: f, params: params, reports: reports, seed: c.Seed}, nil
}

// features is the length of an example's feature vector, as the length of the model implies it.
func (c Config) features() int { return manifest.Dim(c.Plan) / c.Loss.Parameters(1) }

func (c Config) validate() error {
	if c.Loss == nil {
		return fmt.Errorf("loss: missing")
	}
	if c.Plan.Scorecard != nil && c.Score == nil {
		return fmt.Errorf("score: missing, the plan has a scorecard")
	}
	features := c.features()
	if dim := manifest.Dim(c.Plan); c.Loss.Parameters(features) != dim {
		return fmt.Errorf("dim: %d is no dimension of the %s loss", dim, c.Loss.Name())
	}
	have := uint64(len(c.Examples))
	if have > math.MaxInt32 {
		return fmt.Errorf("examples: %d, want at most %d", have, math.MaxInt32)
	}
	for i, ph := range c.Plan.Phases {
		fits := ph.Cohort == ph.Users
		if ph.RoundsPerUser == 1 {
			fits = ph.Cohort > 0 && ph.Rounds <= ph.Users/ph.Cohort
		}
		if ph.Rounds < 1 || ph.Cohort < 1 || !fits {
			return fmt.Errorf("phase %d: %d rounds of %d do not fit %d users", i+1, ph.Rounds, ph.Cohort, ph.Users)
		}
	}
	if need := c.needed(); need < 1 || need > have {
		return fmt.Errorf("examples: %d are too few for a plan of %d users", have, need)
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

// needed is how many examples there have to be: those of all phases, or one cohort of the phase that goes on for ever.
func (c Config) needed() uint64 {
	if last := len(c.Plan.Phases) - 1; manifest.Endless(c.Plan) && last >= 0 {
		return manifest.Users(c.Plan) - c.Plan.Phases[last].Users + c.Plan.Phases[last].Cohort
	}
	return manifest.Users(c.Plan)
}

// over reports whether the method is done, or the examples do not fill the cohort of another round of a run without an end.
func (r *run) over() bool {
	if r.method.Done() || !manifest.Endless(r.Plan) {
		return r.method.Done()
	}
	return r.users+manifest.Cohort(r.Plan, r.rounds+1) > uint64(len(r.order))
}

func (r *run) round() error {
	q := r.method.Query()
	at, found := manifest.PhaseOf(r.Plan, q.Step)
	if !found {
		return errors.New("the plan does not have it")
	}
	if at.Index != r.phase {
		r.phase, r.taken = at.Index, 0
	}
	cohort := r.cohort(at.Index, manifest.Cohort(r.Plan, q.Step))
	estimate, release, err := r.oracles[at.Index].mean(q, cohort)
	if err != nil {
		return err
	}
	if err := r.method.Step(estimate); err != nil {
		return err
	}
	r.rounds++
	if r.OnRound != nil {
		r.OnRound(Round{Step: q.Step, Steps: manifest.Planned(r.Plan), Users: uint64(len(cohort)), Cohort: cohort, Model: r.method.Model,
			Point: q.Point, Frame: q.Frame, Validation: learner.ValidationOf(r.method), Release: release, State: r.method.MarshalBinary})
	}
	return nil
}

// cohort is the next n users of a phase, or the same n in every round where the phase is interactive.
func (r *run) cohort(phase int, n uint64) []int32 {
	first := r.begun[phase]
	if r.Plan.Phases[phase].RoundsPerUser == 1 {
		first += r.taken
		r.taken += n
	}
	r.users = max(r.users, first+n)
	return r.order[first : first+n]
}

// reportID gives user i of a round an id; the mixer only asks that they differ.
func reportID(step, i uint64) (id shuffle.ReportID) {
	binary.LittleEndian.PutUint64(id[:], step)
	binary.LittleEndian.PutUint64(id[8:], i)
	return id
}
