package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/rehearse/tune"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
)

func newTune() *cobra.Command {
	var (
		f      taskFlags
		data   rehearse.Data
		out    string
		force  bool
		seeds  int
		seed   uint64
		asJSON cli.JSON
	)
	c := &cobra.Command{
		Use:   "tune -f TASK [--data FILE] [-o TASK]",
		Short: "compare settings of a task by simulation, on data that are public",
		Long: `tune plans and simulates the task as it is, and with one key changed at a time: crosses of
categorical columns on or off, hats or logarithms of numbers, random Fourier features of
all numbers, a smaller norm bound, other clip norms, a ridge, fewer and more rounds,
another share of first users, and all users in every round (schedule.interactive: the
users have to come back for each round). Each setting is scored on a fifth of the rows,
from which it does not learn. Every seed holds out other rows, and all settings see the
same. Keys that were better alone are then tried together.

A setting is called better if its paired gain is beyond the noise of the seeds: a
one-sided t-test at 5 % over all comparisons, corrected for training rows that seeds
share. Otherwise the task stays as it is.

The data must be public, or their use already accounted for: a setting chosen on private
data reveals something about them, and the epsilon of the task does not cover that.
Without --data, rows are made up from the declaration: a rough guide to clip norm, norm
bound and rounds, which cannot tell whether the declared features fit.

Tasks of silos and of people are refused: see learner simulate --set.`,
		Example: `  learner tune -f deploy/tasks/adult.yaml --data adult.data.gz -o tuned.yaml
  learner tune -f deploy/tasks/quickstart.yaml --set schedule.users=5000 --seeds 8`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if seeds < 2 {
				return cli.Usagef("--seeds %d: want at least 2, without a spread nothing can be called better", seeds)
			}
			if err := keepsEdited(out, force); err != nil {
				return err
			}
			if err := cli.Writable("-o", out); err != nil {
				return err
			}
			if data.Path == "" && data.Format != "" {
				return cli.Usagef("--format goes with --data")
			}
			spec, err := f.load()
			if err != nil {
				return err
			}
			t := tuning{f: f, data: data, command: c}
			rows, err := t.rows(spec, seed)
			if err != nil {
				return err
			}
			report, err := t.run(rows, seeds, seed)
			if err != nil {
				return err
			}
			if err := asJSON.Print(c.OutOrStdout(), report, report.Print); err != nil || out == "" {
				return err
			}
			return t.write(out, report)
		},
	}
	f.flags(c.Flags())
	cli.Data(c.Flags(), &data.Path, "public data `FILE`, or a quoted pattern of files (default: rows made up from the declaration)")
	c.Flags().StringVar((*string)(&data.Format), "format", "", task.FormatHelp())
	c.Flags().StringVarP(&out, "output", "o", "", "write the task with the best setting to `FILE`")
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	c.Flags().IntVar(&seeds, "seeds", 8, "`K` runs of each setting")
	c.Flags().Uint64Var(&seed, "seed", 1, "first `SEED`; the same seed gives the same comparison")
	asJSON.Flag(c.Flags())
	return c
}

// tuning is one command.
type tuning struct {
	f       taskFlags
	data    rehearse.Data
	command *cobra.Command
}

// load reads the task with overrides in addition to the command line's.
func (t tuning) load(sets []string) (*task.Spec, error) {
	return task.Load(t.f.path, append(slices.Clone(t.f.sets), sets...))
}

func (t tuning) rows(spec *task.Spec, seed uint64) (tune.Rows, error) {
	if t.data.Path == "" {
		s, err := sim.NewSchema(spec, seed)
		return tune.Schema{Schema: s}, cli.Usage(err)
	}
	progress := t.command.ErrOrStderr()
	return tune.Public{Load: func(spec *task.Spec) (rehearse.Public, error) {
		rows, err := rehearse.ReadPublic(spec, t.data, progress)
		progress = io.Discard // print it once
		return rows, cli.Usage(err)
	}}, nil
}

func (t tuning) run(rows tune.Rows, seeds int, seed uint64) (tune.Report, error) {
	stderr := t.command.ErrOrStderr()
	var bar *cli.Bar
	comparison, err := tune.New(tune.Config{Load: t.load, Rows: rows, Seeds: seeds, First: seed, Most: mostTuned,
		Progress: func(p tune.Progress) { bar.Set(p.Done, p.Runs) }})
	if err != nil {
		return tune.Report{}, cli.Usage(err)
	}
	warn(stderr, rows)
	cost := comparison.Cost()
	fmt.Fprintf(stderr, "%s, %s each: %d runs of %d users, up to %d coordinates a report\n",
		cli.Count(cost.Settings, "setting"), cli.Count(cost.Seeds, "seed"), cost.Runs, cost.Users, cost.Coordinates)
	if cost.Simulated < cost.Users {
		fmt.Fprintf(stderr,
			"every round asks a sample, of at most %d users in a run, and adds the Gaussian noise of the whole cohort\n",
			cost.Simulated)
	}
	bar = cli.NewBar(stderr, "runs", cost.Runs)
	defer bar.Close()
	return comparison.Run(t.command.Context())
}

// mostTuned is the users of one run of tune, at most.
const mostTuned = 200000

func (t tuning) write(out string, r tune.Report) error {
	data, err := os.ReadFile(t.f.path)
	if err != nil {
		return fmt.Errorf("read task file: %w", err)
	}
	on := "rows made up from the declaration"
	if t.data.Path != "" {
		on = "rows of " + filepath.Base(t.data.Path)
	}
	sets := append(slices.Clone(t.f.sets), r.Best.Sets()...)
	spec, err := task.Parse(data, sets)
	if err != nil {
		return err
	}
	moved, err := spec.Moved(filepath.Dir(t.f.path), filepath.Dir(out))
	if err != nil {
		return err
	}
	data, err = task.Edit(data, append(sets, moved...), r.Comment(on))
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, data, 0o644); err != nil {
		return fmt.Errorf("write the task file: %w", err)
	}
	return nil
}
