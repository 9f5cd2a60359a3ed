package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	"github.com/panlearn/panlearn/stream"
)

type removed struct {
	Task    stream.Task `json:"task"`
	Removed []string    `json:"removed"` // streams that were there
}

func newRemove() *cobra.Command {
	var (
		f     adminFlags
		force bool
	)
	c := &cobra.Command{
		Use:   "remove (-f TASK | --task NAME) --nats URL",
		Short: "delete the streams of a task that has ended, with an administrator's credentials",
		Long: `remove deletes the task's five streams and all that is in them: rounds, batches, the end. Model and ledger are in the learner's
state folder, which it does not touch, nor the folders of stage and devices. Stop the task's learner before: one that runs on an
ended task creates the streams again where its credentials let it. A task that has not ended is refused, unless --force is given.
Interrupted, it may be run again. A name of which the broker has no stream is an error, exit code 1.`,
		Example: "  learner remove --task a9a --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(false)
			if err != nil {
				return err
			}
			if config.Logger, err = f.log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			list, err := admin.Remove(c.Context(), config, force)
			if err != nil {
				return cli.Classify(brokerErrors(err), cli.Is(cli.ExitUsage, admin.ErrNotEnded))
			}
			if len(list) == 0 {
				return fmt.Errorf("no task %q is on this broker: none of its streams is there", config.Task)
			}
			return cli.Result(c.OutOrStdout(), f.json, removed{config.Task, list}, func(w io.Writer) error {
				for _, name := range list {
					if _, err := fmt.Fprintf(w, "removed  %s\n", name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.Flags(c.Flags())
	c.Flags().BoolVar(&force, "force", false, "remove a task that has not ended: its learner is lost, or its events were never wanted")
	return c
}
