package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run/statedir"
)

func newSnapshot() *cobra.Command {
	var (
		where  whereFlags
		output string
		format string
	)
	c := &cobra.Command{
		Use:   "snapshot (--state DIR | --http URL)",
		Short: "write the current model with its privacy statement",
		Long: `snapshot writes the model that may be released now. The privacy statement is part of every format:

  json  everything that is known of the model: weights in the units of the data, features, privacy, declaration
  npy   a .npz container for numpy.load: the arrays weights and intercept, and the rest of the JSON as metadata.json
  onnx  a graph that scores raw events, feature map included, for ONNX runtimes; the statement is in its metadata`,
		Example: "  learner snapshot --state /var/lib/panlearn/a9a -o model.json\n" +
			"  learner snapshot --state /var/lib/panlearn/a9a --format onnx -o model.onnx",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "json" && format != "npy" && format != "onnx" {
				return cli.Usagef("--format %q: want json, npy or onnx", format)
			}
			if format != "json" && (output == "" || output == "-") && cli.Terminal(os.Stdout) && c.OutOrStdout() == io.Writer(os.Stdout) {
				return cli.Usagef("--format %s is not text: name a file with -o", format)
			}
			doc, err := where.ask(c.Context(), statedir.AskSnapshot)
			if err != nil {
				return err
			}
			if doc, err = inFormat(doc, format); err != nil {
				return err
			}
			if output == "" || output == "-" {
				_, err = c.OutOrStdout().Write(doc)
				return err
			}
			if err := os.WriteFile(output, doc, 0o644); err != nil {
				return fmt.Errorf("write the snapshot: %w", err)
			}
			return nil
		},
	}
	where.Flags(c.Flags())
	c.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write instead of standard output")
	c.Flags().StringVar(&format, "format", "json", "format of the model: json, npy (a .npz container) or onnx")
	return c
}

// inFormat converts the learner's answer, which is JSON.
func inFormat(doc []byte, format string) ([]byte, error) {
	if format == "json" {
		return append(doc, '\n'), nil
	}
	s, err := released.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("the learner's answer: %w", err)
	}
	if format == "npy" {
		return s.NumPy()
	}
	return s.ONNX()
}
