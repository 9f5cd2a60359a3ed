package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/rehearse/compare"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
)

// choosing are the flags of plan that go with --compare.
type choosing struct {
	on    bool
	data  rehearse.Data
	split string
	seeds int
	seed  uint64
}

func (o *choosing) flags(c *cobra.Command) {
	c.Flags().BoolVar(&o.on, "compare", false,
		"print a table to choose from: trust, unit, passes and method, with predicted accuracy (docs/why/choosing.md)")
	cli.Data(c.Flags(), &o.data.Path,
		"with --compare: predict on the rows of a public `FILE`, or of a quoted pattern of files (default: rows made up from the declaration)")
	c.Flags().StringVar((*string)(&o.data.Format), "format", "", "with --compare: "+task.FormatHelp())
	c.Flags().StringVar(&o.split, "split", sim.SplitBlocks,
		"with --compare and --data: divide the data into the task's silos by `WAY`: "+
			"blocks, sorted-label, label, label-pairs or column:NAME")
	c.Flags().IntVar(&o.seeds, "seeds", 5, "with --compare: `K` runs of each line, each on other rows")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "with --compare: first `SEED`; the same seed gives the same table")
}

// validate refuses flags that go with others.
func (o *choosing) validate(c *cobra.Command, picture string) error {
	for _, name := range []string{"data", "format", "split", "seeds", "seed"} {
		if !o.on && c.Flags().Changed(name) {
			return cli.Usagef("--%s goes with --compare", name)
		}
	}
	switch {
	case o.on && picture != "":
		return cli.Usagef("--plot: draws one plan, and --compare prints a table")
	case o.data.Path == "" && o.data.Format != "":
		return cli.Usagef("--format goes with --data")
	case o.data.Path == "" && c.Flags().Changed("split"):
		return cli.Usagef("--split goes with --data")
	case o.on && o.seeds < 2:
		return cli.Usagef("--seeds %d: want at least 2, without a spread nothing can be called better", o.seeds)
	}
	if err := sim.ValidateSplit(o.split); err != nil {
		return cli.Usagef("--split %w", err)
	}
	return nil
}

// table compares the lines of a task.
func (o *choosing) table(c *cobra.Command, f taskFlags) (compare.Table, error) {
	spec, err := f.load()
	if err != nil {
		return compare.Table{}, err
	}
	if c.Flags().Changed("split") && spec.Silo == nil {
		return compare.Table{}, cli.Usagef("--split goes with a task that declares silos: %s has none", spec.Name)
	}
	if o.split != sim.SplitBlocks && spec.Privacy.ByUser() {
		return compare.Table{}, cli.Usagef("--split %s: --compare takes people in the order of the file: want blocks",
			o.split)
	}
	rows, err := o.rows(c, spec)
	if err != nil {
		return compare.Table{}, err
	}
	stderr := c.ErrOrStderr()
	var bar *cli.Bar
	load := func(sets []string) (*task.Spec, error) {
		return task.Load(f.path, append(slices.Clone(f.sets), sets...))
	}
	planning := cli.NewBar(stderr, "planned", 0)
	onPipe := func(what string, done, of int) { // a line for each quarter
		if f, ok := stderr.(*os.File); (!ok || !cli.Terminal(f)) && 4*done/of > 4*(done-1)/of {
			fmt.Fprintf(stderr, "%d of %d %s\n", done, of, what)
		}
	}
	lines, err := compare.New(compare.Config{Load: load, Rows: rows, Seeds: o.seeds, First: o.seed,
		Planned: func(done, ways int) {
			planning.Set(done, ways)
			onPipe("plans", done, ways)
		},
		Progress: func(done, runs int) {
			bar.Set(done, runs)
			onPipe("runs", done, runs)
		}})
	planning.Close()
	if err != nil {
		return compare.Table{}, cli.Usage(err)
	}
	warn(stderr, rows)
	bar = cli.NewBar(stderr, "runs", lines.Lines()*o.seeds)
	defer bar.Close()
	return lines.Run(c.Context())
}

// rows returns the rows of the data file, or, without one, made-up rows that fit the declaration.
func (o *choosing) rows(c *cobra.Command, spec *task.Spec) (rehearse.Source, error) {
	if o.data.Path == "" {
		features, err := spec.Compile()
		return rehearse.MadeUp{Spec: spec, Features: features}, cli.Usage(err)
	}
	rows, err := rehearse.ReadPublic(spec, o.data, c.ErrOrStderr())
	if err == nil {
		rows, err = rows.Group(spec, o.data, o.split)
	}
	return rows, cli.Usage(err)
}

// warn prints whose rows a comparison learns from.
func warn(to io.Writer, rows interface{ Data() bool }) {
	if rows.Data() {
		fmt.Fprintln(to, "the data must be public or paid for: the task's epsilon does not cover what is chosen by them")
	} else {
		fmt.Fprintln(to, "no data: rows are made up from the declaration, with labels of a planted model; a rough guide")
	}
}
