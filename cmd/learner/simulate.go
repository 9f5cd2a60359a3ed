package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
)

func newSimulate() *cobra.Command {
	var (
		f         taskFlags
		data      rehearse.Data
		seeds     int
		seed      uint64
		asJSON    cli.JSON
		users     []uint
		picture   string
		baselines []string
		methods   []string
		order     rehearse.Order
		split     string
	)
	c := &cobra.Command{
		Use:   "simulate -f TASK (--data FILE [--test FILE] | --sweep-users N,N,...)",
		Short: "run the protocol in memory, with a seed, on data that you may look at",
		Long: `simulate plans the task and runs it in memory: with the real randomizer, mixer, estimator
and method, without broker and encryption. Use public or consented data: everybody who
knows the seed knows the noise. The seed decides who takes part when. A continuous task
runs over the data once, in the order of the file, and so does every task with --in-order.

With --baselines the same units spend the same budget in other ways: central (a trusted
curator has all rows in one place, same method), local (nobody is trusted, same method),
shuffle (the stage is trusted to mix), multi-pass (a trusted curator asks everybody in
every round), exact (the same method without privacy), converged (without privacy and
clipping, as many passes as it takes), or all. For silos, local and shuffle are the task
under that trust, and alone is every silo by itself: a curator of its own rows, with the
whole epsilon, who asks them in every round; its line is the mean over silos, each scored
on all test rows. A baseline that does not apply prints why. --plot draws how the model
improves with the number of users.

If the task declares silos, the rows of the data are divided into them as --split says:
blocks (parts of the file), sorted-label (parts of the file sorted by label), label (a
silo for each label), label-pairs (one for each pair of labels of two classes), or
column:NAME (one for each value of a column). In one pass a report is about the next rows
of a silo; in many passes it is about all of them. Under trust local a silo of another
size than planned adds the noise that its own rows need. A silo that its device would
refuse, because it has too few rows, takes no part and is listed. If privacy.unit is user,
people are grouped, in a silo too, and a unit is all rows of a person.

In a task without an end every row is scored by the model that was current before its
round. Two learners without privacy run beside it on the same rows: sgd, one step a row,
and window, a fit of the last rows. --plot draws all of them over the users.

It ends with a verdict: the private models compared with the best constant, with the
snapshot that the task starts from, with the same method without noise, and with a fit of
the same features without privacy if that takes only seconds.

With --sweep-users it needs no data: it plans and runs every method that applies, or those
of --algorithms, for each number of users on a synthetic population with the task's
dimension and loss and a known optimum.`,
		Example: `  learner simulate -f deploy/tasks/a9a.yaml --data a9a.gz --test a9a.t.gz --seeds 5 --baselines all --plot curve.svg
  learner simulate -f deploy/tasks/spambase.yaml --data spambase.data.gz --holdout 5 --set schedule.users=3681
  learner simulate -f deploy/tasks/quickstart.yaml --sweep-users 2000,8000,32000,128000 --seeds 10 --plot risk.png`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (data.Path == "") == (len(users) == 0) {
				return cli.Usagef("want exactly one of --data FILE and --sweep-users N,N,...")
			}
			if len(users) > 0 && (data.Holdout > 0 || len(baselines) > 0 || data.Test != "" || data.Format != "") {
				return cli.Usagef("--test, --holdout, --baselines and --format go with --data")
			}
			if len(users) == 0 && len(methods) > 0 {
				return cli.Usagef("--algorithms goes with --sweep-users; for data set schedule.algorithm")
			}
			if data.Holdout > 0 && data.Test != "" {
				return cli.Usagef("--test and --holdout: want one of them, test data or a part of --data to test on")
			}
			if data.Holdout == 1 {
				return cli.Usagef("--holdout 1: want at least 2, or no row is left to train on")
			}
			if err := validatePicture(picture); err != nil {
				return err
			}
			others, err := rehearse.Baselines(baselines)
			if err != nil {
				return cli.Usagef("--baselines %w", err)
			}
			if err := order.Validate(); err != nil {
				return cli.Usage(err)
			}
			if err := sim.ValidateSplit(split); err != nil {
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
				report, err := rehearse.Sweep(c.Context(), job, rehearse.SweepConfig{Users: users, Methods: methods,
					Repeats: seeds, Seed: seed})
				if err != nil {
					return cli.Usage(err)
				}
				if picture != "" {
					if err := drawn(report.Draw(picture)); err != nil {
						return err
					}
				}
				return asJSON.Print(c.OutOrStdout(), report, report.Print)
			}
			if c.Flags().Changed("split") && job.Spec.Silo == nil {
				return cli.Usagef("--split goes with a task that declares silos: %s has none", job.Spec.Name)
			}
			r, err := rehearse.Load(rehearse.Config{Job: job, Order: order, Split: split, Baselines: others,
				Watch: picture != ""}, data, c.ErrOrStderr())
			if err != nil {
				return cli.Usage(err)
			}
			if picture != "" && r.Test == nil && !rehearse.Follows(job) {
				return cli.Usagef("--plot: draws what the model does on test data; add --test FILE or --holdout K")
			}
			if r.Test == nil && !rehearse.Follows(job) {
				fmt.Fprintln(c.ErrOrStderr(), "no test data, so only the training loss is told: add --test FILE or --holdout K")
			}
			report, err := r.Run(c.Context(), c.ErrOrStderr(), seed, seeds)
			if err != nil {
				return err
			}
			if picture != "" {
				if err := drawn(report.Draw(picture)); err != nil {
					return err
				}
			}
			return asJSON.Print(c.OutOrStdout(), report, report.Print)
		},
	}
	f.flags(c.Flags())
	cli.Data(c.Flags(), &data.Path, "training data `FILE`, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&data.Test, "test", "", "test data `FILE`, as --data")
	c.Flags().StringVar((*string)(&data.Format), "format", "", task.FormatHelp())
	c.Flags().UintVar(&data.Holdout, "holdout", 0,
		"test on one of `K` rows, or people where privacy.unit is user, and do not train on it")
	c.Flags().StringSliceVar(&baselines, "baselines", nil,
		"also simulate `NAME,...`: central, local, shuffle, alone, multi-pass, exact, converged, or all")
	c.Flags().StringVar(&split, "split", sim.SplitBlocks,
		"divide the data into the task's silos by `WAY`: blocks, sorted-label, label, label-pairs or column:NAME")
	c.Flags().BoolVar(&order.InOrder, "in-order", false,
		"users take part in the order of the file, as with ingest publish (default: in an order by the seed)")
	c.Flags().IntVar(&order.Shuffle, "shuffle", 0,
		"with --in-order, take one of `N` rows at a time, as ingest publish --shuffle does")
	c.Flags().IntVar(&seeds, "seeds", 1, "`K` independent runs")
	c.Flags().Uint64Var(&seed, "seed", 1, "first `SEED`; the same seed gives the same model")
	c.Flags().UintSliceVar(&users, "sweep-users", nil, "numbers of users `N,N,...` to measure excess risk for")
	c.Flags().Lookup("sweep-users").DefValue = "" // else its help says (default [])
	c.Flags().StringSliceVar(&methods, "algorithms", nil, "the `NAME,...` to sweep (default: all that apply)")
	c.Flags().StringVar(&picture, "plot", "",
		"draw the sweep, or learning curves on the test data, into a `FILE`: .png or .svg")
	asJSON.Flag(c.Flags())
	return c
}
