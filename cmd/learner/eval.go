package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/task/source"
)

func newEval() *cobra.Command {
	var (
		model, data, format string
		asJSON              bool
	)
	c := &cobra.Command{
		Use:   "eval --model FILE --data FILE",
		Short: "how a snapshot does on labelled data",
		Long: `eval says how a snapshot does on labelled data. An event that does not fit the declaration is left out; which ones they are is
said on standard error, by line and column, never by content.`,
		Example: "  learner eval --model model.json --data a9a.t.gz --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if model == "" || data == "" {
				return cli.Usagef("--model and --data: name a snapshot and a data file (- is standard input)")
			}
			p, err := loadPredictor(model, format)
			if err != nil {
				return err
			}
			rows, err := source.Open(data, p.Features)
			if err != nil {
				return cli.Usage(err)
			}
			defer rows.Close()
			result, err := p.Evaluate(rows.All(), nameRows(c.ErrOrStderr(), "left out"))
			if err != nil {
				return err
			}
			if result.Invalid > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "%d of %d rows do not fit the task's declaration and are left out\n", result.Invalid, result.Examples+result.Invalid)
			}
			return cli.Result(c.OutOrStdout(), asJSON, result, func(w io.Writer) error {
				if result.Accuracy != nil {
					_, err := fmt.Fprintf(w, "%d examples: accuracy %.4f, loss %.4f\n", result.Examples, *result.Accuracy, result.Loss)
					return err
				}
				_, err := fmt.Fprintf(w, "%d examples: root mean squared error %.5g, mean absolute error %.5g, loss %.4g\n",
					result.Examples, *result.Error, *result.MeanAbsoluteError, result.Loss)
				if result.Coverage != nil && err == nil {
					_, err = fmt.Fprintf(w, "%.2f %% of the labels are at most their prediction; quantile loss %.5g\n", 100**result.Coverage, *result.QuantileLoss)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&model, "model", "", "snapshot `FILE`, json or npy")
	c.Flags().StringVar(&data, "data", "", "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&format, "format", "", "format of the data, if not the task's: libsvm, csv, jsonl, idx or parquet")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
