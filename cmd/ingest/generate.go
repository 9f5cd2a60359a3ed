package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
)

func newGenerate() *cobra.Command {
	var (
		config        sim.SyntheticConfig
		events        int
		output, truth string
		drift         string
	)
	c := &cobra.Command{
		Use:   "generate --events N --dim D -o FILE",
		Short: "write synthetic events with a known optimum, as JSON lines",
		Long: `generate draws features uniformly from [-1, 1]^D and labels from the model of the loss at
a hidden parameter theta*. With --drift the population changes on the way: jump (to
another theta*, halfway), turn (slowly to it), seasons (to it and back, twice) or shares
(halfway all scores fall by 3, so that one class becomes rare). --truth writes theta* of
the first event.`,
		Example: "  ingest generate --events 20000 --dim 8 --seed 7 -o events.jsonl --truth truth.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if events < 1 {
				return cli.Usagef("--events %d: want at least 1", events)
			}
			if output == "" {
				return cli.Usagef("-o: name a file, or - for standard output")
			}
			s, err := sim.NewSynthetic(config)
			if err != nil {
				return cli.Usage(err)
			}
			stream, err := s.Drifting(drift, events)
			if err != nil {
				return cli.Usagef("--%w", err)
			}
			out := os.Stdout
			if output != "-" {
				if out, err = os.Create(output); err != nil {
					return cli.Usage(err)
				}
			}
			if err := sim.WriteEvents(out, stream); err != nil {
				return err
			}
			if output != "-" {
				if err := out.Close(); err != nil {
					return fmt.Errorf("write %s: %w", output, err)
				}
			}
			if truth == "" {
				return nil
			}
			file, err := os.Create(truth)
			if err != nil {
				return cli.Usage(err)
			}
			if err := cli.PrintJSON(file, map[string]any{"loss": config.Loss, "weights": s.Truth(),
				"intercept": 0}); err != nil {
				return err
			}
			return file.Close()
		},
	}
	c.Flags().IntVar(&events, "events", 20000, "`N` events")
	c.Flags().IntVar(&config.Dim, "dim", 8, "`D` features, x0 to x(D-1)")
	c.Flags().StringVar(&config.Loss, "loss", "logistic", "logistic (labels -1 and 1) or squared")
	c.Flags().Float64Var(&config.TruthNorm, "truth-norm", sim.TruthNorm, "norm of theta*")
	c.Flags().Float64Var(&config.Noise, "noise", 0.1, "squared loss: labels have noise uniform in [-NOISE, NOISE]")
	c.Flags().Uint64Var(&config.Seed, "seed", 1, "the same `SEED` gives the same events; another seed has another optimum: to test a model, split one file")
	c.Flags().StringVar(&drift, "drift", sim.NoDrift,
		"how the population changes: `KIND` none, jump, turn, seasons or shares")
	c.Flags().StringVarP(&output, "output", "o", "", "`FILE` of events")
	c.Flags().StringVar(&truth, "truth", "", "`FILE` for theta*")
	return c
}
