package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Config fixes a simulated run.
type Config struct {
	Plan *wire.Plan
	Loss convex.Loss
	// Score writes the scores of a point on an event, as Plan.Scorecard defines them; it is needed where
	// there is a scorecard, and not called elsewhere.
	Score func(dst, theta []float64, e convex.Example)
	// Examples has one example a user, for at least as many users as the plan has; which of them take part, and when,
	// follows from the seed. An example without features and with NaN as its label reports the zero vector, as a row does
	// that does not fit its declaration.
	Examples []convex.Example
	// Blocks replaces Examples where a report is about several units or rows: one a report, each of at least
	// as many units as every mechanism of the plan needs.
	Blocks []block.Block
	// Silos holds the silo of each of Blocks: a round has one block of a silo at most. Where silos stay away,
	// or have no block left, a round has fewer reports than planned, and the minimum of its phase at least.
	// nil: every block is of another silo.
	Silos []int
	Seed  uint64
	// InOrder lets the users take part in the order of Examples or Blocks, whatever the seed: a stream in time.
	InOrder bool
	// Exact runs the same method on the exact means of the clipped gradients: the non-private one-pass baseline.
	Exact bool
	// NoiseStd, if not nil, runs the method on exact means of the clipped gradients with Gaussian noise, as other
	// trust models add: it is the standard deviation of one coordinate of a mean of users reports in a phase, in
	// the units of the gradient. The plan needs no randomizer then.
	NoiseStd func(phase int, users uint64) float64
	// Forge, if not nil, may overwrite a report of one of Examples or Blocks before it is mixed, as a liar's device
	// does. p is the mechanism of the round.
	Forge func(i int32, p randomizer.Params, report []byte)
	// OnRound, if not nil, is called after every step.
	OnRound func(Round)
}

// A Round describes a step to an observer.
type Round struct {
	Step, Steps uint64           // Steps is the planned number; a continuous plan goes on after it
	Users       uint64           // of this round
	Cohort      []int32          // their indices in Examples or Blocks; only valid during the call
	Model       func() []float64 // as of now; a copy, only valid during the call
	Point       []float64        // at which the cohort was asked; nil for moments
	Frame       *convex.Frame    // the coordinates of Point; nil: the declared ones
	// Validation holds the scores so far; nil without scores.
	Validation *method.Validation
	Tracking   *method.Tracking       // how a bank follows its stream; nil for other methods
	Release    *shuffle.Release       // what the stage released; nil in runs without the randomizer
	State      func() ([]byte, error) // of the method after the step; only valid during the call
}

// Result holds the results of a run.
type Result struct {
	Model  []float64
	Rounds uint64
	Users  uint64 // in all rounds
	State  []byte // of the method at its end
	// Validation holds the scores; nil without scores.
	Validation *method.Validation
	// Learned holds what the first cohorts of a practical plan taught; nil in a proved one.
	Learned *practical.Learned
}

// Run takes every planned step. A continuous plan it runs until the examples that are left do not fill a cohort. It
// stops early with the context's error.
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
	order   []int32  // reports in the order in which their users take part
	stints  []stint  // by phase
	left    []int32  // of order, the blocks of silos that took part in no round
	rounds  uint64
	users   uint64 // that took part, each counted once
	taken   uint64 // users of the present phase that took part, where each takes part in one round
	phase   int
}

// An oracle estimates the answer of a cohort to a query.
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
	out := &run{Config: c, method: method, order: make([]int32, c.reports()), stints: stintsOf(c.Plan)}
	for i := range out.order {
		out.order[i] = int32(i)
	}
	if !c.InOrder {
		rand.New(Entropy(c.Seed, "order")).Shuffle(len(out.order), func(i, j int) {
			out.order[i], out.order[j] = out.order[j], out.order[i]
		})
	}
	out.left = slices.Clone(out.order)
	reports, own := Entropy(c.Seed, "reports"), newOwnNoise(c.Plan)
	for i := range c.Plan.Phases {
		one, err := c.oracle(i, reports, own)
		if err != nil {
			return nil, err
		}
		out.oracles = append(out.oracles, one)
	}
	return out, nil
}

// oracle returns the oracle of one phase; devices draw from entropy.
func (c Config) oracle(phase int, entropy rand.Source, own *ownNoise) (oracle, error) {
	of := report.Config{Features: c.features(), Loss: c.Loss, ClipNorm: c.Plan.ClipNorm, Radius: c.Plan.Radius,
		Practical: manifest.Practical(c.Plan)}
	if of.Scores = int(manifest.Gradients(c.Plan).GetMechanism().GetScores()); of.Scores > 0 {
		of.Score = c.Score
	}
	f := c.Plan.Phases[phase]
	of, err := of.Phase(report.Statistic(f.Statistic), f.Smoothing)
	if err != nil {
		return nil, err
	}
	if x := f.GetProx(); x != nil {
		set, err := manifest.Set(c.Plan)
		if err != nil {
			return nil, err
		}
		of.Prox = &report.Prox{Weight: x.Weight, StepSize: x.StepSize, Steps: int(x.Steps), Set: set}
	}
	if c.Exact || c.NoiseStd != nil {
		reports, err := report.NewExact(of)
		if err != nil {
			return nil, err
		}
		mean := exact{block: c.block, reports: reports}
		if c.Exact {
			return mean, nil
		}
		return gaussian{exact: mean, std: c.NoiseStd, phase: phase, seed: c.Seed}, nil
	}
	params, err := manifest.Params(f.Mechanism)
	if err != nil {
		return nil, err
	}
	out := &mixed{block: c.block, phase: f, params: params, of: of, makers: map[int]*report.Maker{}, entropy: entropy,
		seed: c.Seed, forge: c.Forge}
	if c.Silos != nil {
		out.planned = func(step uint64) uint64 { return planned(c.Plan, phase, step) }
		if own.applies(phase) {
			out.own = func(units uint64) (randomizer.Params, error) { return own.params(phase, params, units) }
		}
	}
	return out, nil
}

// reports returns the number of reports that there are to draw from.
func (c Config) reports() int { return max(len(c.Examples), len(c.Blocks)) }

// block returns the block that report i is about.
func (c Config) block(i int32) block.Block {
	if c.Blocks == nil {
		return block.Of(c.Examples[i : i+1]...)
	}
	return c.Blocks[i]
}

// features returns the length of an example's feature vector, as the length of the model implies it.
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
	have := uint64(c.reports())
	if have > math.MaxInt32 {
		return fmt.Errorf("examples: %d, want at most %d", have, math.MaxInt32)
	}
	if c.Examples != nil && c.Blocks != nil {
		return fmt.Errorf("blocks: %d beside %d examples: want one of them", len(c.Blocks), len(c.Examples))
	}
	units, stints, own := 1, stintsOf(c.Plan), newOwnNoise(c.Plan)
	for i, ph := range c.Plan.Phases {
		of := stints[i]
		fits := ph.Cohort <= of.users || ph.Top > 0
		if !of.interactive && ph.Top == 0 {
			fits = ph.Cohort > 0 && ph.Rounds <= ph.Users/ph.Cohort
		}
		if ph.Rounds < 1 || ph.Cohort < 1 || !fits || ph.Again && (i == 0 || ph.Users != of.users) {
			return fmt.Errorf("phase %d: %d rounds of %d do not fit %d users", i+1, ph.Rounds, ph.Cohort, ph.Users)
		}
		if !own.applies(i) {
			units = max(units, int(ph.Mechanism.GetUnits()))
		}
	}
	if c.Silos != nil && len(c.Silos) != len(c.Blocks) {
		return fmt.Errorf("silos: of %d blocks, want those of all %d", len(c.Silos), len(c.Blocks))
	}
	if need := c.needed(); c.Silos == nil && (need < 1 || need > have) {
		return fmt.Errorf("examples: %d are too few for a plan of %d users", have, need)
	}
	for i := range c.reports() {
		b := c.block(int32(i))
		if b.Units() < units {
			return fmt.Errorf("block %d: %d units, want at least %d", i, b.Units(), units)
		}
		for _, e := range b.Rows {
			if len(e.Index) == 0 && math.IsNaN(e.Label) { // the device's report is then of the zero vector
				continue
			}
			if err := e.Validate(features); err != nil {
				return fmt.Errorf("example %d: %w", i, err)
			}
			if err := c.Loss.CheckLabel(e.Label); err != nil {
				return fmt.Errorf("example %d: %w", i, err)
			}
		}
	}
	return nil
}

// needed returns the number of reports that a run needs: the reports of all stints, or one cohort of the endless phase.
func (c Config) needed() uint64 {
	n := manifest.Users(c.Plan)
	if last := len(c.Plan.Phases) - 1; manifest.Endless(c.Plan) && last >= 0 {
		f := c.Plan.Phases[last]
		if n -= f.Users; f.Top > 0 {
			return n + f.Minimum
		}
		n += f.Cohort
	}
	return n
}

// over reports whether the method is done, or the examples do not fill the cohort of another round of a run without
// an end.
func (r *run) over() bool {
	if r.method.Done() || !manifest.Endless(r.Plan) {
		return r.method.Done()
	}
	if r.Silos != nil {
		have := map[int]bool{}
		for _, i := range r.left {
			have[r.Silos[i]] = true
		}
		return uint64(len(have)) < manifest.Cohort(r.Plan, r.rounds+1)
	}
	n := manifest.Cohort(r.Plan, r.rounds+1)
	if q := r.method.Query(); q.Cohort > 0 {
		n = q.Cohort
	}
	return r.users+n > uint64(len(r.order))
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
	cohort, err := r.cohort(at.Index, q)
	if err != nil {
		return err
	}
	estimate, release, err := r.oracles[at.Index].mean(q, cohort)
	if err != nil {
		return err
	}
	if err := r.method.Step(estimate); err != nil {
		return err
	}
	r.rounds++
	if r.OnRound != nil {
		r.OnRound(Round{Step: q.Step, Steps: manifest.Planned(r.Plan), Users: uint64(len(cohort)), Cohort: cohort,
			Model: r.method.Model,
			Point: q.Point, Frame: q.Frame, Validation: learner.ValidationOf(r.method), Tracking: learner.TrackingOf(r.method),
			Release: release, State: r.method.MarshalBinary})
	}
	return nil
}

// reportID gives user i of a round an id; the mixer only requires that they differ.
func reportID(step, i uint64) (id shuffle.ReportID) {
	binary.LittleEndian.PutUint64(id[:], step)
	binary.LittleEndian.PutUint64(id[8:], i)
	return id
}
