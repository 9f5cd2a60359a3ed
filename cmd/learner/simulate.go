package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

func newSimulate() *cobra.Command {
	var (
		f          taskFlags
		data, test string
		format     string
		seeds      int
		seed       uint64
		asJSON     cli.JSON
		users      []uint
		picture    string
		holdout    uint
		baselines  []string
		methods    []string
		order      arrival
		split      string
	)
	c := &cobra.Command{
		Use:   "simulate -f TASK (--data FILE [--test FILE] | --sweep-users N,N,...)",
		Short: "run the protocol in memory, with a seed, on data that you may look at",
		Long: `simulate plans the task and runs it in memory: the real randomizer, mixer, estimator and method, without broker and
sealing. It is for public or consented data: whoever knows the seed knows the noise. The seed says who takes part when, but for a
continuous task, which runs over the data once, in the order of the file, and with --in-order.

With --baselines the same units spend the same budget in other ways: central (a trusted curator has all in one place, same method), local (nobody
is trusted, same method), shuffle (the stage is trusted to mix), multi-pass (a trusted curator who asks everybody in every round), exact (the
same method without privacy), converged (without privacy and clipping, as many passes as it takes), or all of them. Of silos, local and shuffle are
the task under that trust, and alone is every silo by itself: the curator of its own rows, with the whole epsilon, who asks them in every round; its
line is the mean over silos, each scored on all test rows. A baseline that does not apply says why. --plot draws how the model gets better
with the users that have taken part.

A task that declares silos has them made of the rows of the data, as --split says: blocks (parts of the file), sorted-label (parts of
the file sorted by label), label (a silo for each label), label-pairs (one for each pair of labels of two classes), or column:NAME (one for
each value of a column). In one pass a report is about the next rows of a silo, in many about all of them. Under trust local a silo of another size
than planned adds the noise that its own rows need; a silo that its device would refuse, for too few rows, takes no part and is named. Where
privacy.unit is user, people are grouped, in a silo too, and a unit is all rows of a person.

Of a task without an end every row is scored by the model that stood before its round. Beside it stand two learners that are not
private, on the same rows: sgd, a step a row, and window, a fit of the last rows. --plot draws all of them over the users.

It ends with a verdict: the private models beside the best constant, the snapshot that the task begins with, the same method
without noise, and a fit of the same features without privacy, where that takes seconds.

With --sweep-users it needs no data: it plans and runs every method that applies, or those of --algorithms, for each number of
users on a synthetic population of the task's dimension and loss, whose optimum is known.`,
		Example: `  learner simulate -f deploy/tasks/a9a.yaml --data a9a.gz --test a9a.t.gz --seeds 5 --baselines all --plot curve.svg
  learner simulate -f deploy/tasks/spambase.yaml --data spambase.data.gz --holdout 5 --set schedule.users=3681
  learner simulate -f deploy/tasks/quickstart.yaml --sweep-users 2000,8000,32000,128000 --seeds 10 --plot risk.png`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (data == "") == (len(users) == 0) {
				return cli.Usagef("want exactly one of --data FILE and --sweep-users N,N,...")
			}
			if len(users) > 0 && (holdout > 0 || len(baselines) > 0 || test != "" || format != "") {
				return cli.Usagef("--test, --holdout, --baselines and --format go with --data")
			}
			if len(users) == 0 && len(methods) > 0 {
				return cli.Usagef("--algorithms goes with --sweep-users; for data set schedule.algorithm")
			}
			if holdout > 0 && test != "" {
				return cli.Usagef("--test and --holdout: want one of them, test data or a part of --data to test on")
			}
			if holdout == 1 {
				return cli.Usagef("--holdout 1: want at least 2, or no row is left to train on")
			}
			if err := checkPicture(picture); err != nil {
				return err
			}
			others, err := baselineNames(baselines)
			if err != nil {
				return err
			}
			if err := order.check(); err != nil {
				return err
			}
			if err := sim.CheckSplit(split); err != nil {
				return cli.Usagef("--split %w", err)
			}
			if seeds < 1 {
				return cli.Usagef("--seeds %d: want at least 1", seeds)
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			if len(users) > 0 {
				report, err := sweep(c.Context(), job, sweepConfig{users: users, methods: methods, repeats: seeds, seed: seed,
					picture: picture})
				if err != nil {
					return err
				}
				return asJSON.Print(c.OutOrStdout(), report, report.print)
			}
			if c.Flags().Changed("split") && job.Spec.Silo == nil {
				return cli.Usagef("--split goes with a task that declares silos: %s has none", job.Spec.Name)
			}
			s := simulation{job: job, holdout: holdout, others: others, format: task.Format(format), order: order, split: split}
			if err := s.load(c.ErrOrStderr(), data, test); err != nil {
				return err
			}
			if picture != "" && s.test == nil && !s.follows() {
				return cli.Usagef("--plot: draws what the model does on test data; add --test FILE or --holdout K")
			}
			if s.test == nil && !s.follows() {
				fmt.Fprintln(c.ErrOrStderr(), "no test data, so only the training loss is told: add --test FILE or --holdout K")
			}
			s.watch = picture != "" && !s.follows()
			report, err := s.run(c.Context(), c.ErrOrStderr(), seed, seeds)
			if err != nil {
				return err
			}
			if picture != "" {
				draw := report.draw
				if s.follows() {
					draw = report.drawStream
				}
				if err := draw(picture); err != nil {
					return err
				}
			}
			return asJSON.Print(c.OutOrStdout(), report, report.print)
		},
	}
	f.Flags(c.Flags())
	cli.Data(c.Flags(), &data, "training data `FILE`, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&test, "test", "", "test data `FILE`, as --data")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	c.Flags().UintVar(&holdout, "holdout", 0,
		"test on one of `K` rows, or people where privacy.unit is user, and do not train on it")
	c.Flags().StringSliceVar(&baselines, "baselines", nil,
		"also simulate `NAME,...`: central, local, shuffle, alone, multi-pass, exact, converged, or all")
	c.Flags().StringVar(&split, "split", sim.SplitBlocks,
		"make the task's silos of the data by `WAY`: blocks, sorted-label, label, label-pairs or column:NAME")
	order.flags(c.Flags())
	c.Flags().IntVar(&seeds, "seeds", 1, "`K` independent runs")
	c.Flags().Uint64Var(&seed, "seed", 1, "first `SEED`; the same seed gives the same model")
	c.Flags().UintSliceVar(&users, "sweep-users", nil, "numbers of users `N,N,...` to measure excess risk for")
	c.Flags().Lookup("sweep-users").DefValue = "" // else its help says (default [])
	c.Flags().StringSliceVar(&methods, "algorithms", nil, "the `NAME,...` to sweep; all that apply if not set")
	c.Flags().StringVar(&picture, "plot", "",
		"draw the sweep, or learning curves on the test data, into a `FILE`: .png or .svg")
	asJSON.Flag(c.Flags())
	return c
}

// A simulation is a job with data.
type simulation struct {
	job         run.Job
	format      task.Format // of the data; empty: the task's
	order       arrival
	holdout     uint     // one unit of so many is one of the test, see block.Holdout; 0 for none
	held        []bool   // the rows of the data that are of the test
	others      []string // baselines
	watch       bool     // score the model on the test data on the way, for a picture
	train, test []convex.Example
	labelled    []convex.Example // those of train that fit the declaration
	split       string           // how silos are made of train
	// If a report is about more than a row, grouped describes how reports are made, and units holds the units of
	// train, each by itself: people, or the units of the silos that take part. With silos, blocks makes the blocks of
	// a plan for a seed, and silos holds the units of each silo. Otherwise all are nil.
	grouped *grouping
	units   []block.Block
	blocks  func(plan *wire.Plan, seed uint64) blocks
	silos   [][]block.Block
}

func (s *simulation) load(progress io.Writer, data, test string) error {
	if err := s.read(progress, data, test); err != nil {
		return err
	}
	if !manifest.Endless(s.job.Plan) {
		s.order.warn(progress, data, s.labelled, s.job.Features, s.mixed())
	}
	if s.job.Spec.Silo != nil || s.job.Spec.ByUser() {
		return s.group(progress, data)
	}
	if need := manifest.Users(s.job.Plan) + manifest.Spare(s.job.Plan); uint64(len(s.train)) < need &&
		!manifest.Endless(s.job.Plan) {
		return cli.Usagef("--data %s has %d rows to train on, the plan wants %d users: --set schedule.users=%d", data,
			len(s.train), need, len(s.train))
	} else if surplus := uint64(len(s.train)) - need; surplus > 0 && !manifest.Endless(s.job.Plan) {
		fmt.Fprintf(progress, "%s wants %d users: %d of the %d rows to train on take no part in a run\n", s.job.Spec.Name,
			need, surplus, len(s.train))
	}
	return nil
}

// A simulateReport is the JSON of `learner simulate`.
type simulateReport struct {
	Task      string  `json:"task"`
	Algorithm string  `json:"algorithm"`
	Rounds    uint64  `json:"rounds"` // taken; a continuous task takes as many as the data fill
	Cohort    uint64  `json:"cohort"`
	Base      uint64  `json:"base,omitempty"` // of a task without end: the smallest cohort
	Top       uint64  `json:"top,omitempty"`  // and the largest
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	Trust     string  `json:"trust"`
	Unit      string  `json:"unit"` // that epsilon protects, in words
	wording.Kind
	// Start is the snapshot that the task begins with, and what it costs; null: none.
	Start *planStart `json:"start,omitempty"`
	// Grouping describes how reports were made of the rows; null if each is about one row.
	Grouping *grouping `json:"grouping,omitempty"`
	// HonestFraction is the share of every cohort whose noise epsilon relies upon.
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	// Learned holds what the first cohorts of the first seed released; null in a proved plan.
	Learned *practical.Summary `json:"learned,omitempty"`
	Runs    []simulated        `json:"runs"`
	Mean    simulated          `json:"mean"`
	SD      *simulated         `json:"sd,omitempty"` // of one run, over the seeds; none for a single one
	// NonPrivate scores the same method without noise on the order of users of the first seed.
	NonPrivate simulated `json:"non_private"`
	// Baseline scores the best constant for the training labels: the majority class, or the mean. See model.Baseline.
	Baseline simulated `json:"baseline"`

	// Diverges describes models that are worse than Baseline, and what helps; absent if there are none.
	Diverges *diverged `json:"diverges,omitempty"`

	// Verdict compares the private models with others, in words; absent for a task without an end.
	Verdict *verdict `json:"verdict,omitempty"`
	// ManyPasses tells what the same users in all rounds would give; absent where the task may not have it.
	ManyPasses *manyPasses `json:"many_passes,omitempty"`

	Baselines []baseline `json:"baselines,omitempty"`
	// Online scores learners that are not private and follow the same rows in the order of the first seed; only for a
	// task without an end.
	Online  []online `json:"online,omitempty"`
	Curve   []spot   `json:"curve,omitempty"` // of the runs, where a picture is drawn
	Measure string   `json:"curve_measure,omitempty"`

	shown  measure // by the curves
	rounds string  // in words

	assuming string // see accounting.Trust.Assuming
}

func (s *simulation) run(ctx context.Context, progress io.Writer, first uint64, seeds int) (simulateReport, error) {
	plan := s.job.Plan
	out := simulateReport{Task: s.job.Spec.Name, Algorithm: plan.Algorithm, Rounds: manifest.Planned(plan),
		Cohort:  manifest.Gradients(plan).Cohort,
		Epsilon: plan.Epsilon, Delta: s.job.Problem.Delta, HonestFraction: s.job.Problem.HonestFraction,
		assuming: s.job.Assuming(),
		Trust:    s.job.Problem.Trust.String(), Kind: wording.Of(plan), Grouping: s.grouped, Start: startOf(s.job)}
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
	out.rounds = roundsOf(plan, own.rounds)
	if s.watch {
		out.shown = s.measure()
		out.Measure = out.shown.name
	}
	out.Baseline = s.constant()
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
	if s.follows() {
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
	runs   []simulated
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
func (s *simulation) series(ctx context.Context, t trials, c sim.Config) (series, error) {
	var out series
	c.Loss, c.InOrder = s.job.Loss, s.order.inOrder || manifest.Endless(c.Plan)
	c.Score = s.job.Score()
	var observed []curve
	for seed := t.first; seed < t.first+uint64(t.seeds); seed++ {
		c.Seed = seed
		if err := s.data(&c); err != nil {
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
		one, err := s.score(result.Model)
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

func (r simulateReport) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w,
		"%s: %s, %s\na real run    epsilon %s, delta %g%s\nprotects      %s\nprivate       %s%s\nbaseline      %s\n",
		r.Task, r.Algorithm, r.rounds, cli.Upper(r.Epsilon, 4), r.Delta, r.assuming, r.Unit, r.Mean, r.SD.spread(len(r.Runs)),
		r.Baseline); err != nil {
		return err
	}
	r.Start.print(w)
	if err := printLearned(w, r.Learned); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Baselines, func(b baseline) bool { return b.Name == baselineExact }) {
		if _, err := fmt.Fprintf(w, "not private   %s (first seed)\n", r.NonPrivate); err != nil {
			return err
		}
	}
	if err := r.ManyPasses.print(w); err != nil {
		return err
	}
	for _, o := range r.Online {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", o.Name, o); err != nil {
			return err
		}
	}
	for _, b := range r.Baselines {
		if err := b.print(w); err != nil {
			return err
		}
	}
	if r.Verdict != nil {
		if _, err := fmt.Fprintf(w, "verdict       %s\n", r.Verdict.Text); err != nil {
			return err
		}
	}
	if r.Diverges != nil {
		_, err := fmt.Fprintf(w, "attention     %s\n", r.Diverges.Text)
		return err
	}
	return nil
}
