package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// thresholdHelp is the help of the flag --threshold.
const thresholdHelp = "predict the positive of two classes above probability `T`, or above score T where the loss has no " +
	"probabilities"

func newPredict() *cobra.Command {
	var (
		model, data, format, as, output string
		threshold                       float64
	)
	c := &cobra.Command{
		Use:   "predict --model FILE --data FILE",
		Short: "score events with a snapshot",
		Long: `predict reads events and writes a line for each: its position, its score, its probability
where the loss has one, and its class, or the predicted number or count. The events may
have labels or not. An event that does not fit the declaration gets an empty score;
standard error lists such events by line and column, never by content. The output depends
on single events and has no privacy guarantee: it is for people who may see the events.`,
		Example: "  learner predict --model model.json --data events.csv -o scores.csv\n" +
			"  tail -f events.jsonl | learner predict --model model.npz --data - --format jsonl --output jsonl",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if model == "" || data == "" {
				return cli.Usagef("--model and --data: name a snapshot and a data file (- is standard input)")
			}
			p, err := loadPredictor(model, format)
			if err != nil {
				return err
			}
			if as != released.CSV && as != released.JSONL {
				return cli.Usagef("--output %q: want csv or jsonl; -o names the file", as)
			}
			o := released.ScoreOptions{AtOnce: data == "-", Unfit: run.NameRows(c.ErrOrStderr(), "no score")}
			if c.Flags().Changed("threshold") {
				o.Threshold = &threshold
			}
			if _, err := p.Cut(o.Threshold); err != nil {
				return cli.Usagef("--%w", err)
			}
			rows, err := source.OpenFitting(data, p.Features.Unlabelled())
			if err != nil {
				return cli.Usage(err)
			}
			defer rows.Close()
			if output == "" || output == "-" {
				return predict(c, p, rows, o, as, c.OutOrStdout())
			}
			file, err := os.Create(output)
			if err != nil {
				return fmt.Errorf("write predictions: %w", err)
			}
			return errors.Join(predict(c, p, rows, o, as, file), file.Close())
		},
	}
	c.Flags().StringVar(&model, "model", "", "snapshot `FILE`, json or npy")
	cli.Data(c.Flags(), &data, "data `FILE`, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	c.Flags().Float64Var(&threshold, "threshold", 0, thresholdHelp)
	c.Flags().StringVar(&as, "output", released.CSV, "format of the predictions: csv or jsonl")
	c.Flags().StringVarP(&output, "out", "o", "", "`FILE` to write instead of standard output")
	return c
}

// loadPredictor reads a snapshot for data of a format; none is the task's own.
func loadPredictor(path, format string) (released.Predictor, error) {
	snapshot, err := loadSnapshot(path)
	if err != nil {
		return released.Predictor{}, err
	}
	p, err := released.NewPredictor(snapshot, task.Format(format))
	return p, cli.Usage(err)
}

func loadSnapshot(path string) (released.Snapshot, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > released.MaxFile {
		err = fmt.Errorf("--model %s: %d bytes, want a snapshot of at most %d", path, info.Size(), released.MaxFile)
	}
	if err != nil {
		return released.Snapshot{}, cli.Usage(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return released.Snapshot{}, cli.Usage(err)
	}
	snapshot, err := released.Parse(data)
	return snapshot, cli.Usage(err)
}

// predict scores the rows. Standard input may go on for long, so there every line is written at once.
func predict(c *cobra.Command, p released.Predictor, rows *source.Reader, o released.ScoreOptions, as string,
	out io.Writer) error {
	table, err := released.NewTable(out, as, p)
	if err != nil {
		return err
	}
	count, err := p.Score(rows.All(), table, o)
	if count.Invalid > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d of %d rows do not fit the task's declaration and have no score\n", count.Invalid,
			count.Rows)
	}
	return err
}
