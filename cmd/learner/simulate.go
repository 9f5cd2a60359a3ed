package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

func newSimulate() *cobra.Command {
	var (
		f          taskFlags
		data, test string
		seeds      int
		seed       uint64
		asJSON     bool
		users      []uint
		picture    string
	)
	c := &cobra.Command{
		Use:   "simulate -f TASK (--data FILE [--test FILE] | --sweep-users N,N,...)",
		Short: "run the protocol in memory, with a seed, on data that you may look at",
		Long: `simulate plans the task and runs it in memory: the real randomizer, mixer, estimator and method, without broker and
sealing. It is for public or consented data: whoever knows the seed knows the noise. A continuous task runs over the
data once, in the order of the file.

With --sweep-users it needs no data: it plans and runs every method that applies for each number of users on a synthetic
population of the task's dimension and loss, whose optimum is known.`,
		Example: `  learner simulate -f deploy/tasks/a9a.yaml --data a9a.gz --test a9a.t.gz --seeds 5
  learner simulate -f deploy/tasks/quickstart.yaml --sweep-users 2000,8000,32000,128000 --seeds 10 --plot risk.png`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (data == "") == (len(users) == 0) {
				return cli.Usagef("want exactly one of --data FILE and --sweep-users N,N,...")
			}
			if picture != "" && len(users) == 0 {
				return cli.Usagef("--plot goes with --sweep-users")
			}
			if seeds < 1 {
				return cli.Usagef("--seeds %d: want at least 1", seeds)
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			if len(users) > 0 {
				report, err := sweep(c.Context(), job, users, seeds, seed, picture)
				if err != nil {
					return err
				}
				return cli.Result(c.OutOrStdout(), asJSON, report, report.print)
			}
			s := simulation{job: job}
			if err := s.load(c.ErrOrStderr(), data, test); err != nil {
				return err
			}
			report, err := s.run(c.Context(), c.ErrOrStderr(), seed, seeds)
			if err != nil {
				return err
			}
			return cli.Result(c.OutOrStdout(), asJSON, report, report.print)
		},
	}
	f.Flags(c.Flags())
	c.Flags().StringVar(&data, "data", "", "training data `FILE`, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&test, "test", "", "test data `FILE`, as --data")
	c.Flags().IntVar(&seeds, "seeds", 1, "`K` independent runs")
	c.Flags().Uint64Var(&seed, "seed", 1, "first `SEED`; the same seed gives the same model")
	c.Flags().UintSliceVar(&users, "sweep-users", nil, "numbers of users `N,N,...` to measure excess risk for")
	c.Flags().StringVar(&picture, "plot", "", "draw the sweep into a `FILE`: .png, .svg or .pdf")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type simulation struct {
	job         pipeline.Job
	train, test []convex.Example
}

func (s *simulation) load(progress io.Writer, data, test string) error {
	var err error
	var invalid int
	if s.train, invalid, err = pipeline.LoadExamples(s.job.Features, data); err != nil {
		return cli.Usage(err)
	}
	if invalid > 0 {
		fmt.Fprintf(progress, "%d of %d rows of %s do not fit the declaration; they report the zero vector\n", invalid, len(s.train), data)
	}
	if need := s.job.Plan.TakenUsers(); uint64(len(s.train)) < need && s.job.Plan.Continuous == "" {
		return cli.Usagef("--data %s has %d rows, the plan wants %d users: --set schedule.users=%d", data, len(s.train), need, len(s.train))
	}
	if test != "" {
		if s.test, _, err = pipeline.LoadExamples(s.job.Features, test); err != nil {
			return cli.Usage(err)
		}
	}
	return nil
}

// A simulated is the outcome of one seed, or the mean of several.
type simulated struct {
	Seed         *uint64  `json:"seed,omitempty"`
	TrainLoss    float64  `json:"train_loss"`
	TestLoss     *float64 `json:"test_loss,omitempty"`
	TestAccuracy *float64 `json:"test_accuracy,omitempty"`
	TestError    *float64 `json:"test_error,omitempty"`
}

// A simulateReport is the JSON of `learner simulate`.
type simulateReport struct {
	Task      string      `json:"task"`
	Algorithm string      `json:"algorithm"`
	Rounds    uint64      `json:"rounds"` // taken; a continuous task takes as many as the data fill
	Cohort    uint64      `json:"cohort"`
	Epsilon   float64     `json:"epsilon"`
	Delta     float64     `json:"delta"`
	Runs      []simulated `json:"runs"`
	Mean      simulated   `json:"mean"`
	// NonPrivate is the same method on the same order of users without noise: the first seed.
	NonPrivate simulated `json:"non_private"`
}

func (s *simulation) run(ctx context.Context, progress io.Writer, first uint64, seeds int) (simulateReport, error) {
	plan := s.job.Plan
	out := simulateReport{Task: s.job.Spec.Name, Algorithm: plan.Algorithm, Rounds: plan.Rounds(), Cohort: plan.Phases[0].Cohort,
		Epsilon: plan.Epsilon(), Delta: s.job.Problem.Delta}
	for seed := first; seed < first+uint64(seeds); seed++ {
		one, rounds, err := s.once(ctx, seed, false)
		if err != nil {
			return out, err
		}
		out.Rounds = rounds
		out.Runs = append(out.Runs, one)
		fmt.Fprintf(progress, "seed %d: %s\n", seed, one)
	}
	out.Mean = meanOf(out.Runs)
	var err error
	out.NonPrivate, _, err = s.once(ctx, first, true)
	return out, err
}

func (s *simulation) once(ctx context.Context, seed uint64, exact bool) (out simulated, rounds uint64, err error) {
	result, err := sim.Run(ctx, sim.Config{Plan: s.job.Plan, Loss: s.job.Loss, Examples: s.train, Seed: seed, Exact: exact,
		InOrder: s.job.Plan.Continuous != ""})
	if err != nil {
		return simulated{}, 0, err
	}
	train, err := pipeline.EvaluateExamples(s.job.Features, s.job.Loss, result.Model, s.train)
	if err != nil {
		return simulated{}, 0, err
	}
	out = simulated{Seed: &seed, TrainLoss: train.Loss}
	if s.test != nil {
		test, err := pipeline.EvaluateExamples(s.job.Features, s.job.Loss, result.Model, s.test)
		if err != nil {
			return simulated{}, 0, err
		}
		out.TestLoss, out.TestAccuracy, out.TestError = &test.Loss, test.Accuracy, test.Error
	}
	return out, result.Rounds, nil
}

func meanOf(runs []simulated) simulated {
	mean := func(get func(simulated) *float64) *float64 {
		var sum float64
		for _, r := range runs {
			v := get(r)
			if v == nil {
				return nil
			}
			sum += *v / float64(len(runs))
		}
		return &sum
	}
	return simulated{
		TrainLoss:    *mean(func(r simulated) *float64 { return &r.TrainLoss }),
		TestLoss:     mean(func(r simulated) *float64 { return r.TestLoss }),
		TestAccuracy: mean(func(r simulated) *float64 { return r.TestAccuracy }),
		TestError:    mean(func(r simulated) *float64 { return r.TestError }),
	}
}

func (s simulated) String() string {
	text := fmt.Sprintf("train loss %.4f", s.TrainLoss)
	if s.TestLoss != nil {
		text += fmt.Sprintf(", test loss %.4f", *s.TestLoss)
	}
	if s.TestAccuracy != nil {
		text += fmt.Sprintf(", test accuracy %.4f", *s.TestAccuracy)
	}
	if s.TestError != nil {
		text += fmt.Sprintf(", test error %.5g", *s.TestError)
	}
	return text
}

func (r simulateReport) print(w io.Writer) error {
	spread := ""
	if n := len(r.Runs); n > 1 && r.Mean.TestAccuracy != nil {
		var squares float64
		for _, one := range r.Runs {
			squares += math.Pow(*one.TestAccuracy-*r.Mean.TestAccuracy, 2)
		}
		spread = fmt.Sprintf(" (accuracy sd %.4f over %d seeds)", math.Sqrt(squares/float64(n-1)), n)
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d rounds of %d, epsilon %s, delta %g\nprivate       %s%s\nnot private   %s\n",
		r.Task, r.Algorithm, r.Rounds, r.Cohort, cli.Upper(r.Epsilon, 4), r.Delta, r.Mean, spread, r.NonPrivate)
	return err
}
