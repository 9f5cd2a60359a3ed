package main

import (
	"errors"
	"fmt"
	"io"

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
		Short: "how data fit a task: invalid, missing, clamped and unlisted values, norms, labels, order",
		Long: `check reads data and says how they fit a task: rows that are invalid (they would report the zero vector) and why, values that are
missing, moved into their bounds, or words outside the vocabulary, column by column, vectors that are longer than the norm bound, how many events there are of each
label, and whether labels come in an order. Of rows it says where they are and never what is in them.

It runs where the data are, and what it prints is not private: it is computed from the rows without noise. It is for people who may see
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
			if err := asJSON.Print(c.OutOrStdout(), report, func(w io.Writer) error {
				return cli.PrintInspection(w,
					report)
			}); err != nil {
				return err
			}
			fmt.Fprintln(c.ErrOrStderr(),
				"this is computed from the rows without noise: it is not private, and for people who may see the data")
			return report.Unfit()
		},
	}
	f.Flags(c.Flags())
	cli.Data(c.Flags(), &data, "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	asJSON.Flag(c.Flags())
	return c
}
