package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// defaultColumns bounds the columns that are printed unless a flag says otherwise.
const defaultColumns = 20

func newExplain() *cobra.Command {
	var (
		model, data, format, class string
		line                       int64
		most                       int
		asJSON                     cli.JSON
	)
	c := &cobra.Command{
		Use:   "explain --model FILE [--data FILE [--line N]]",
		Short: "say what each column contributes to a model's score",
		Long: `explain shows how a model scores. The contribution of a column is the sum of weight times
value over the features made from it. The contributions of an event and the intercept add
up to its score.

Without --data it prints for each column the declared values with the smallest and the
largest contribution. With --data, rows that you may look at, it also prints how much the
contribution varies over them (spread, a standard deviation) and sorts the columns by it.
With --line it explains the prediction for one event, compared with the average event of
the data.

It describes the model, not the world. Columns that move together may share their effect
in any proportion, and every weight has noise. The output with --data depends on single
events and has no privacy guarantee: it is for people who may see them.`,
		Example: "  learner explain --model model.json\n" +
			"  learner explain --model model.json --data public.csv --line 17",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case model == "":
				return cli.Usagef("--model: name a snapshot")
			case line != 0 && data == "":
				return cli.Usagef("--line: name the events with --data")
			case line < 0 || most < 0:
				return cli.Usagef("--line and --columns: want numbers above 0")
			}
			p, err := loadPredictor(model, format)
			if err != nil {
				return err
			}
			o := released.ExplainOptions{Class: class, Line: line, Unfit: run.NameRows(c.ErrOrStderr(), "left out")}
			if data != "" {
				rows, err := source.OpenFitting(data, p.Features.Unlabelled())
				if err != nil {
					return cli.Usage(err)
				}
				defer rows.Close()
				o.Rows = rows.All()
			}
			e, err := p.Explain(o)
			if err != nil {
				return err
			}
			return asJSON.Print(c.OutOrStdout(), e, func(w io.Writer) error { return printExplanation(w, e, most) })
		},
	}
	c.Flags().StringVar(&model, "model", "", "snapshot `FILE`, json or npy")
	cli.Data(c.Flags(), &data, "data `FILE` with examples, or a quoted pattern of files; - for standard input")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	c.Flags().Int64Var(&line, "line", 0, "explain the prediction for the event at line `N` of the data, as predict numbers it")
	c.Flags().StringVar(&class, "class", "", "explain the score of this `CLASS` (default: for each column the class whose score it changes most)")
	c.Flags().IntVar(&most, "columns", defaultColumns, "print at most `N` columns; 0 for all")
	asJSON.Flag(c.Flags())
	return c
}

func printExplanation(w io.Writer, e released.Explanation, most int) error {
	if e.Event != nil {
		return printEvent(w, e, most)
	}
	if err := printed(w, "score: %s\n", e.Of); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "column\t"
	if e.Classes != nil {
		head += "class\t"
	}
	if e.Examples > 0 {
		head += "spread\t"
	}
	fmt.Fprintln(t, head+"effect\tleast at\tmost at")
	for _, c := range shown(e.Columns, most) {
		fmt.Fprint(t, c.Column, "\t")
		if e.Classes != nil {
			fmt.Fprint(t, c.Class, "\t")
		}
		if c.Spread != nil {
			fmt.Fprintf(t, "%.3g\t", *c.Spread)
		}
		if c.Effect == nil {
			fmt.Fprint(t, "\t\t\n")
			continue
		}
		fmt.Fprintf(t, "%.3g\t%s (%+.3g)\t%s (%+.3g)\n", *c.Effect, c.Lowest.Value, c.Lowest.Contribution, c.Highest.Value,
			c.Highest.Contribution)
	}
	err := errors.Join(t.Flush(), more(w, len(e.Columns), most), printUndeclared(w, e))
	if e.Unit == "log odds" {
		err = errors.Join(err, printed(w, "a contribution of +1 multiplies the odds by %.2f\n", math.E))
	}
	return err
}

// printUndeclared prints of how many columns nothing is known.
func printUndeclared(w io.Writer, e released.Explanation) error {
	n := 0
	for _, c := range e.Columns {
		if c.Effect == nil && c.Spread == nil {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return printed(w, "1 column has no declared values: give --data, rows that tell what it contributes\n")
	}
	return printed(w, "%d columns have no declared values: give --data, rows that tell what they contribute\n", n)
}

// shown returns the first of a list; all where most is 0.
func shown[T any](list []T, most int) []T {
	if most > 0 && len(list) > most {
		return list[:most]
	}
	return list
}

// more prints how many of a list were not printed.
func more(w io.Writer, n, most int) error {
	if most > 0 && n > most {
		return printed(w, "and %d more: --columns 0 prints all\n", n-most)
	}
	return nil
}

func printEvent(w io.Writer, e released.Explanation, most int) error {
	v, of := e.Event, e.Of
	if v.Class != "" {
		of += fmt.Sprintf(", of %q", v.Class)
	}
	err := printed(w, "line %d scores %.4g (%s); the average of %d events scores %.4g\n", v.Line, v.Score, of, e.Examples,
		v.Base)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "column\tcontributes")
	for _, p := range shown(v.Parts, most) {
		fmt.Fprintf(t, "%s\t%+.3g\n", p.Column, p.Contribution)
	}
	return errors.Join(err, t.Flush(), more(w, len(v.Parts), most))
}
