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
		Short: "report how data fit a task: invalid, missing, clamped and unlisted values, norms, labels, order",
		Long: `check reads data and reports how they fit a task: invalid rows (they would report the zero
vector) and why; by column, values that are missing, moved into their bounds, or not in
the vocabulary; vectors longer than the norm bound; the number of events of each label;
and whether the labels come in an order. It names rows by their position and never prints
their content.

Run it where the data are. Its output is not private: it is computed from the rows without
noise, for people who may see them. The exit code is 1 if no row fits.`,
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
				return cli.PrintInspection(w, report)
			}); err != nil {
				return err
			}
			fmt.Fprintln(c.ErrOrStderr(),
				"this is computed from the rows without noise: it is not private, and for people who may see the data")
			return report.Unfit()
		},
	}
	f.flags(c.Flags())
	cli.Data(c.Flags(), &data, "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	asJSON.Flag(c.Flags())
	return c
}
