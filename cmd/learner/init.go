package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/task/draft"
)

func newInit() *cobra.Command {
	var (
		data, output string
		force        bool
		o            draft.Options
	)
	c := &cobra.Command{
		Use:   "init --data FILE [--label COLUMN] [-o TASK]",
		Short: "draft a task file from a public sample",
		Long: `init reads a sample of data and writes a task file with a comment for each choice: how the data are written (csv with any of the usual
separators, jsonl, parquet, libsvm), which columns are numbers, words, codes or nothing to learn from, bounds and vocabularies, the label and
the loss that goes with it.

The sample has to be public, or paid for elsewhere: bounds and words are read off it without noise and go into the task, which
every device sees. Never give it the data that the task is about.`,
		Example: `  learner init --data sample.csv --label churned --users 50000 -o churn.yaml
  learner check -f churn.yaml --data sample.csv
  learner plan -f churn.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if data == "" {
				return cli.Usagef("--data: name a file with a public sample")
			}
			toFile := output != "" && output != "-"
			if toFile {
				o.Name = output
				if err := keepsEdited(output, force); err != nil {
					return err
				}
			}
			task, err := draft.FromSample(data, o)
			if err != nil {
				return cli.Usage(err)
			}
			for _, note := range task.Notes {
				fmt.Fprintln(c.ErrOrStderr(), note)
			}
			if toFile {
				err = os.WriteFile(output, task.Task, 0o644)
			} else {
				_, err = c.OutOrStdout().Write(task.Task)
			}
			if err != nil {
				return fmt.Errorf("write the task file: %w", err)
			}
			return nil
		},
	}
	cli.Data(c.Flags(), &data, "public sample `FILE`, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&o.Label, "label", "",
		"`COLUMN` to predict; without it one that is called like a label, or the last")
	c.Flags().StringVar(&o.Loss, "loss", "", "`NAME` of the loss, if not the one that goes with the label")
	c.Flags().IntVar(&o.Users, "users", 0, "`N` people who will take part, if not as many as the sample has rows")
	c.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	c.Flags().StringVarP(&output, "out", "o", "", "`FILE` to write instead of standard output; the task is called like it")
	return c
}

// keepsEdited refuses to write a task file over one that is there, unless it is forced to.
func keepsEdited(output string, force bool) error {
	if there, err := os.Stat(output); err == nil && !force && (there.Mode().IsRegular() || there.IsDir()) {
		return cli.Usagef("-o %s: is there, and may have been edited: name another file, or say --force", output)
	}
	return nil
}
