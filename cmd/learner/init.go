package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/model"
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
		Long: `init reads a sample of data and writes a task file with a comment for each choice: the
format of the data (csv with any of the usual separators, jsonl, parquet, libsvm); which
columns are numbers, words, codes, or not used; bounds and vocabularies; the label and its
loss.

With -o it also makes a public model from the sample and its labels, boosted trees and a
linear model, and starts the task from it: the users then correct its errors. The model is
in the files TASK-public.json and TASK-start.json beside the task file, and they belong to
it. init prints how good the public model is alone, and what the users can be expected to
add. --no-public-labels leaves all that out.

The sample must be public, or its use already accounted for: bounds, words and the public
model are made from it without noise and become part of the task, which every device sees.
A leaf of a tree is computed from as few as 15 rows. Never give init the data that the
task is about.`,
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
				if err := keepsEdited(output, force); err != nil {
					return err
				}
				if there, err := os.Stat(output); err != nil || there.Mode().IsRegular() { // files cannot lie beside a device
					base := strings.TrimSuffix(strings.TrimSuffix(output, ".yaml"), ".yml")
					o.Name, o.Public, o.Start = output, base+"-public.json", base+"-start.json"
				}
			}
			task, err := draft.FromSample(data, o)
			if err != nil {
				return cli.Usage(err)
			}
			files, err := filesOf(task, output, o)
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := keepsEdited(f.name, force); toFile && err != nil {
					return err
				}
			}
			for _, note := range task.Notes {
				fmt.Fprintln(c.ErrOrStderr(), note)
			}
			if !toFile {
				_, err := c.OutOrStdout().Write(task.Task)
				return err
			}
			for _, f := range files {
				if err := os.WriteFile(f.name, f.content, 0o644); err != nil {
					return fmt.Errorf("write the task file: %w", err)
				}
			}
			return nil
		},
	}
	cli.Data(c.Flags(), &data, "public sample `FILE`, or a quoted pattern of files; gzip and zstd too")
	c.Flags().StringVar(&o.Label, "label", "",
		"`COLUMN` to predict (default: one named like a label, else the last)")
	c.Flags().StringVar(&o.Loss, "loss", "", "`NAME` of the loss (default: the usual one for such a label)")
	c.Flags().IntVar(&o.Users, "users", 0, "`N` people who will take part (default: the number of the sample's rows)")
	c.Flags().BoolVar(&o.NoLabels, "no-public-labels", false,
		"use of the sample's labels only bounds and words: the task starts without a model")
	c.Flags().BoolVar(&o.NoTrees, "no-public-trees", false, "start from a linear model of the sample instead of trees")
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	c.Flags().StringVarP(&output, "out", "o", "", "`FILE` to write (default: standard output); names the task")
	return c
}

// A drafted is a file to be written.
type drafted struct {
	name    string
	content []byte
}

// filesOf returns the files of a draft, the task last: it names the others.
func filesOf(d *draft.Draft, output string, o draft.Options) (out []drafted, err error) {
	if d.Public != nil {
		out = append(out, drafted{o.Public, d.Public})
	}
	if d.Start != nil {
		s, err := model.Of(d.Spec, d.Start)
		if err != nil {
			return nil, fmt.Errorf("the start of the task: %w", err)
		}
		s.Privacy = model.Unprotected(s.Privacy.Kind)
		text, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			return nil, fmt.Errorf("the start of the task: %w", err)
		}
		out = append(out, drafted{o.Start, append(text, '\n')})
	}
	return append(out, drafted{output, d.Task}), nil
}

// keepsEdited refuses to write a task file over one that is there, unless it is forced to.
func keepsEdited(output string, force bool) error {
	there, err := os.Stat(output)
	if err == nil && there.IsDir() {
		return cli.Usagef("-o %s: is a folder: name a file in it", output)
	}
	if err == nil && !force && there.Mode().IsRegular() {
		return cli.Usagef("-o %s: is there, and may have been edited: name another file, or say --force", output)
	}
	return nil
}
