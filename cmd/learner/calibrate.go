package main

import (
	"encoding/json"
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

func newCalibrateModel() *cobra.Command {
	var (
		model, data, format, output string
		public                      bool
		asJSON                      cli.JSON
	)
	c := &cobra.Command{
		Use:   "calibrate --model FILE --data FILE --public -o FILE",
		Short: "calibrate a model's probabilities on public rows",
		Long: `calibrate fits a straight line to the scores of a model so that its probabilities match
frequencies: of the events with a probability of 0.8, about eight in ten are positive. It
writes a snapshot like any other. Decisions may change; for two classes the order of
events does not. The rows must be public, which you state with --public. No private row is
used, so the privacy statement does not change.

It prints log loss and calibration error before and after, on rows that the line was not
fitted on (five parts, each scored by the line of the other four). It writes nothing if
the log loss does not get lower.`,
		Example: "  learner calibrate --model model.json --data public.csv --public -o calibrated.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case model == "" || data == "" || output == "":
				return cli.Usagef("--model, --data and -o: name a snapshot, a data file and the snapshot to write")
			case !public:
				return cli.Usagef("--public: the rows enter the model without any protection; the flag says that they need none")
			}
			s, err := loadSnapshot(model)
			if err != nil {
				return err
			}
			p, err := released.NewPredictor(s, task.Format(format))
			if err != nil {
				return cli.Usage(err)
			}
			rows, err := source.OpenFitting(data, p.Features)
			if err != nil {
				return cli.Usage(err)
			}
			defer rows.Close()
			s, figures, err := s.Calibrate(rows.All(), task.Format(format), run.NameRows(c.ErrOrStderr(), "left out"))
			if err != nil {
				return err
			}
			doc, err := json.Marshal(s)
			if err != nil {
				return err
			}
			if doc, err = inFormat(doc, formatOf(output)); err != nil {
				return err
			}
			if err := os.WriteFile(output, doc, 0o644); err != nil {
				return fmt.Errorf("write the snapshot: %w", err)
			}
			return asJSON.Print(c.OutOrStdout(), figures, func(w io.Writer) error { return printCalibrated(w, figures) })
		},
	}
	c.Flags().StringVar(&model, "model", "", "snapshot `FILE`, json or npy")
	cli.Data(c.Flags(), &data, "data `FILE` of public, labelled rows, or a quoted pattern of files; - for standard input")
	c.Flags().StringVar(&format, "format", "", task.FormatHelp())
	c.Flags().BoolVar(&public, "public", false, "state that the rows are public: what is learned from them is not protected")
	c.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write: json, or .npz or .onnx by its ending")
	asJSON.Flag(c.Flags())
	return c
}

func printCalibrated(w io.Writer, c released.Calibrated) error {
	return printed(w, `log loss %.4f -> %.4f, calibration error %.4f -> %.4f, on rows that the line was not fitted on
scores times %.4g, plus %.4g; fitted on %d rows
`, c.Before.LogLoss, c.After.LogLoss, c.Before.CalibrationError, c.After.CalibrationError, c.Scale, c.Shift, c.Examples)
}
