package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
)

func newFinish() *cobra.Command {
	var (
		f   restFlags
		now bool
	)
	c := &cobra.Command{
		Use:   "finish --state DIR [--nats URL]",
		Short: "end a task before its last step, or one without end",
		Long: `finish ends a task for good: the signed End tells stage and publishers to stop, and the model is the one of the last round.
A learner that runs is asked over its control socket. Where none runs, --nats and --identity do in its place.

A round that is announced is waited for and applied, because its users have been asked; with --now it is given up, unless
its batch is there. A round that is given up stays charged in the ledger. A task that has ended stays as it is: exit code 0.
Interrupted while it waits, the request stands for as long as the learner runs.`,
		Example: `  learner finish --state /var/lib/panlearn/a9a
  learner finish --state /var/lib/panlearn/a9a --now --nats nats://broker:4222 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.dir == "" {
				return cli.Usagef("--state: name the folder of the learner's state")
			}
			rest, err := f.config(c)
			if err != nil {
				return err
			}
			s, err := admin.Finish(c.Context(), admin.FinishConfig{AtRest: rest, Now: now})
			if errors.Is(err, admin.ErrNoLearner) {
				return cli.Usagef("%s: %w: name the broker with --nats", f.dir, err)
			}
			if err != nil {
				return restErrors(err)
			}
			return cli.Result(c.OutOrStdout(), f.json, s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "task %s has ended after round %d: %s\nepsilon %s of %g, delta %g\n", s.Task, s.Round, s.EndReason,
					cli.Upper(s.EpsilonSpent, 6), s.EpsilonBudget, s.DeltaSpent)
				return err
			})
		},
	}
	f.add(c, "info", "state `DIR` of the learner, running or not", ", where no learner runs")
	c.Flags().BoolVar(&now, "now", false, "give up a round that has no batch instead of waiting for it")
	return c
}
