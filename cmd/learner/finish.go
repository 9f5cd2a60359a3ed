package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/pipeline"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
)

func newFinish() *cobra.Command {
	var (
		broker        cli.Broker
		log           cli.Log
		dir, identity string
		now, asJSON   bool
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
			if dir == "" {
				return cli.Usagef("--state: name the folder of the learner's state")
			}
			if err := broker.Validate(); err != nil {
				return err
			}
			logger, err := log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			s, err := pipeline.Finish(c.Context(), pipeline.FinishConfig{StateDir: dir, Now: now, Broker: broker.Connection(),
				BrokerWait: broker.Wait, Logger: logger,
				Identity: func() (*seal.Identity, error) { return existingIdentity(identity) }})
			if errors.Is(err, pipeline.ErrNoLearner) {
				return cli.Usagef("%s: %w: name the broker with --nats", dir, err)
			}
			if err != nil {
				return cli.Classify(brokerErrors(err), cli.Is(cli.ExitTransient, state.ErrLocked), cli.Is(cli.ExitTransient, natsjs.ErrNoStream))
			}
			return cli.Result(c.OutOrStdout(), asJSON, s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "task %s has ended after round %d: %s\nepsilon %s of %g, delta %g\n", s.Task, s.Round, s.EndReason,
					cli.Upper(s.EpsilonSpent, 6), s.EpsilonBudget, s.DeltaSpent)
				return err
			})
		},
	}
	c.Flags().StringVar(&dir, "state", "", "state `DIR` of the learner, running or not")
	c.Flags().StringVar(&identity, "identity", "", "`FILE` of the learner's signing key, where no learner runs (default: in the user's configuration folder)")
	c.Flags().BoolVar(&now, "now", false, "give up a round that has no batch instead of waiting for it")
	broker.Flags(c.Flags())
	log.Flags(c.Flags(), "info")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// existingIdentity is the learner's identity, which a command that goes on with a task never makes.
func existingIdentity(path string) (*seal.Identity, error) {
	if path == "" {
		var err error
		if path, err = cli.IdentityPath("learner"); err != nil {
			return nil, err
		}
	}
	identity, err := seal.LoadIdentity(path)
	if err != nil {
		return nil, cli.Usagef("--identity: %w", err)
	}
	return identity, nil
}
