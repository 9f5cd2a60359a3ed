package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Config describes a rehearsal.
type Config struct {
	Job       run.Job
	Order     Order
	Split     string   // how silos are made of the rows, see sim.Silos
	Baselines []string // other ways to spend the same budget, see allBaselines
	Watch     bool     // score the model on the test rows on the way, for a picture
}

// A Rehearsal is a job with rows to run it on.
type Rehearsal struct {
	*Rows
	Groups // made of Rows, if a report is about more than a row

	job    run.Job
	order  Order
	others []string
	watch  bool
}

// Load reads the rows of a rehearsal and groups them. It says which of them do not fit or take no part, and refuses
// rows that are too few for the plan.
func Load(c Config, data Data, progress io.Writer) (*Rehearsal, error) {
	read, err := Read(c.Job.Spec, data, progress)
	if err != nil {
		return nil, err
	}
	r := &Rehearsal{Rows: read, job: c.Job, order: c.Order, others: c.Baselines, watch: c.Watch && !Follows(c.Job)}
	endless := manifest.Endless(r.job.Plan)
	if !endless {
		r.order.warn(progress, data.Path, r.labelled, r.Features, r.mixed())
	}
	if r.spec.Silo != nil || r.spec.Privacy.ByUser() {
		if r.order.InOrder {
			return nil, errors.New("--in-order: not with silos and people, whose order the seed says")
		}
		r.Groups, err = Group(r.job, read, c.Split, progress)
		return r, err
	}
	need, rows := manifest.Users(r.job.Plan)+manifest.Spare(r.job.Plan), uint64(len(r.Train))
	switch {
	case endless:
	case rows < need:
		return nil, fmt.Errorf("--data %s has %d rows to train on, the plan needs %d users: --set schedule.users=%d",
			data.Path, rows, need, rows)
	case rows > need:
		fmt.Fprintf(progress, "%s wants %d users: %d of the %d rows to train on take no part in a run\n", r.spec.Name,
			need, rows-need, rows)
	}
	return r, nil
}

// Run runs the task once a seed, and beside it what it is compared with.
func (s *Rehearsal) Run(ctx context.Context, progress io.Writer, first uint64, seeds int) (report, error) {
	plan := s.job.Plan
	out := report{Ran: Ran{Task: s.job.Spec.Name, Algorithm: plan.Algorithm, Rounds: manifest.Planned(plan),
		Cohort: manifest.Gradients(plan).Cohort, Epsilon: plan.Epsilon, Delta: s.job.Problem.Delta,
		Trust: s.job.Problem.Trust.String(), Kind: wording.Of(plan)},
		HonestFraction: s.job.Problem.HonestFraction, assuming: s.job.Assuming(), Grouping: s.counts, Start: StartOf(s.job)}
	out.Unit = out.Protected()
	if f := manifest.Gradients(plan); f.Top > 0 {
		out.Base, out.Top = f.Minimum, f.Top
	}
	own, err := s.series(ctx, trials{"private", progress, first, seeds}, sim.Config{Plan: plan})
	if err != nil {
		return out, err
	}
	out.Learned = own.first
	out.Rounds, out.Runs, out.Mean, out.SD, out.Curve = own.rounds, own.runs, meanOf(own.runs), deviation(own.runs),
		own.curve
	out.rounds = wording.Rounds(plan, own.rounds)
	if s.watch {
		out.shown = MeasureOf(s.spec.Model.Loss)
		out.Measure = out.shown.Field
	}
	out.Baseline = s.Constant()
	if !slices.Contains(s.others, baselineExact) { // which is the same for all seeds
		exact, err := s.series(ctx, trials{"not private", progress, first, 1}, sim.Config{Plan: plan, Exact: true})
		if err != nil {
			return out, err
		}
		out.NonPrivate = exact.runs[0]
	}
	if out.ManyPasses, err = s.inManyPasses(ctx, progress, first); err != nil {
		return out, err
	}
	if Follows(s.job) {
		if out.Online, err = s.online(ctx, progress, own.scores); err != nil {
			return out, err
		}
	}
	for _, name := range s.others {
		b := s.baseline(ctx, trials{name, progress, first, seeds})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if name == baselineExact {
			if b.Reason != "" {
				return out, errors.New(b.Reason)
			}
			out.NonPrivate = b.Runs[0]
		}
		out.Baselines = append(out.Baselines, b)
	}
	out.Diverges = out.divergence(constantOf(s.job.Features.HasOffset()))
	out.Verdict, err = s.verdict(ctx, &out)
	return out, err
}

// A series is the outcome of several seeds.
type series struct {
	runs   []Outcome
	rounds uint64
	first  *practical.Summary // of the first seed
	curve  []spot
	scores *ahead // of the first seed of a task without an end
}

// trials holds several seeds of one configuration.
type trials struct {
	name     string
	progress io.Writer
	first    uint64 // seed
	seeds    int
}

// series runs one configuration once a seed.
func (s *Rehearsal) series(ctx context.Context, t trials, c sim.Config) (series, error) {
	var out series
	c.Loss, c.InOrder = s.job.Loss, s.order.InOrder || manifest.Endless(c.Plan)
	c.Score = s.job.Score()
	var observed []curve
	for seed := t.first; seed < t.first+uint64(t.seeds); seed++ {
		c.Seed = seed
		if err := s.feed(&c); err != nil {
			return out, err
		}
		var seen curve
		if s.watch {
			c.OnRound = s.observer(&seen, c.Plan)
		}
		var scores *ahead
		if manifest.Endless(c.Plan) {
			scores = s.newAhead(&c)
		}
		result, err := sim.Run(ctx, c)
		c.OnRound = nil
		if err != nil {
			return out, err
		}
		one, err := s.Score(result.Model)
		if err != nil {
			return out, err
		}
		one.Seed = &seed
		one.progressive(result.Validation)
		if scores != nil {
			scores.End()
			one.Prequential = scores.Score
		}
		if len(out.runs) == 0 {
			out.scores = scores
			out.first = result.Learned.Summary()
		}
		out.runs, out.rounds = append(out.runs, one), result.Rounds
		observed = append(observed, seen)
		fmt.Fprintf(t.progress, "%s, seed %d: %s\n", t.name, seed, one)
	}
	out.curve = spots(observed)
	return out, nil
}
