package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/inspection"
	"github.com/panlearn/panlearn/learner/task/source"
)

func newCheck() *cobra.Command {
	var (
		f      taskFlags
		data   string
		format string
		asJSON cli.JSON
	)
	c := &cobra.Command{
		Use:   "check -f TASK --data FILE",
		Short: "how data fit a task: invalid, missing and clamped values, norms, labels, order",
		Long: `check reads data and says how they fit a task: rows that are invalid (they would report the zero vector) and why, values that are
missing or moved into their bounds, column by column, vectors that are longer than the norm bound, how many events there are of each
label, and whether labels come in an order. Of rows it says where they are and never what is in them.

It runs where the data are, and what it prints is not private: it is computed from the rows without noise. It is for whoever may see
them. Exit code 1 where no row fits.`,
		Example: `  learner check -f deploy/tasks/adult.yaml --data adult.data.gz
  learner check -f churn.yaml --data 'events-*.csv.gz' --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if data == "" {
				return cli.Usagef("--data: name a file, such as rows that look like the events")
			}
			s, err := f.load()
			if err != nil {
				return err
			}
			if format != "" {
				if s, err = s.ReadAs(task.Format(format)); err != nil {
					return cli.Usagef("--format: %w", err)
				}
			}
			report, err := inspection.Of(data, s)
			var schema *source.SchemaError
			if errors.As(err, &schema) {
				return err // nothing fits
			}
			if err != nil {
				return cli.Usage(err)
			}
			if report.Rows == 0 && !bool(asJSON) {
				return report.Unfit()
			}
			if err := asJSON.Print(c.OutOrStdout(), report, func(w io.Writer) error { return printInspection(w, report) }); err != nil {
				return err
			}
			fmt.Fprintln(c.ErrOrStderr(), "this is computed from the rows without noise: it is not private, and for whoever may see the data")
			return report.Unfit()
		},
	}
	f.Flags(c.Flags())
	c.Flags().StringVar(&data, "data", "", "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&format, "format", "", "format of the data, if not the task's: libsvm, csv, jsonl, idx or parquet")
	asJSON.Flag(c.Flags())
	return c
}

func printInspection(out io.Writer, r *inspection.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	share := func(n int) string { return fmt.Sprintf("%d (%.3g %%)", n, 100*float64(n)/float64(max(1, r.Rows))) }
	fmt.Fprintf(w, "%s: %s, invalid %s\n", r.Task, cli.Count(r.Rows, "row"), share(r.Invalid))
	for _, bad := range r.First {
		where := fmt.Sprintf("line %d", bad.Line)
		if bad.File != "" {
			where += fmt.Sprintf(" of %q", bad.File)
		}
		if bad.Column != "" {
			where += fmt.Sprintf(", column %q", bad.Column)
		}
		fmt.Fprintf(w, "  %s: %s\n", where, bad.Reason)
	}
	fit := 0
	fmt.Fprintln(w, "\ncolumn\tinvalid\tclamped\tmissing")
	for _, c := range r.Columns {
		if c == (inspection.Column{Name: c.Name}) {
			fit++
			continue
		}
		fmt.Fprintf(w, "%.40q\t%s\t%s\t%s\n", c.Name, share(c.Invalid), share(c.Clamped), share(c.Missing))
	}
	fmt.Fprintf(w, "%d of %s\t0\t0\t0\n", fit, cli.Count(len(r.Columns), "column"))
	if len(r.Unknown) > 0 {
		fmt.Fprintf(w, "no event has the columns %q\n", r.Unknown)
	}
	n := r.Norms
	fmt.Fprintf(w, "\nnorms: half are up to %.4g, 90 %% up to %.4g, 99 %% up to %.4g, all up to %.4g; %.3g %% are above the bound %.4g and scaled down to it\n",
		n.P50, n.P90, n.P99, n.Max, 100*r.ClippedShare, r.NormBound)
	fmt.Fprintln(w, "\nlabel\trows")
	for _, name := range r.LabelNames {
		fmt.Fprintf(w, "%.40q\t%s\n", name, share(r.Labels[name]))
	}
	fmt.Fprintf(w, "\norder: the label's correlation with the position of the row is %.3f, with the label before it %.3f", r.OrderCorrelation, r.NeighbourCorrelation)
	if r.Ordered {
		fmt.Fprintf(w, "\n  %.0f standard deviations from random order: a round would see labels that are not those of the whole. Mix them: ingest publish --shuffle N\n", r.Deviations)
	} else {
		fmt.Fprintln(w, "; that is no sign of an order")
	}
	return w.Flush()
}
