package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/runadmin"
	"github.com/panlearn/panlearn/stream"
)

// minEvery keeps a slip of a unit from listing the streams all the time.
const minEvery = time.Second

func newRetain() *cobra.Command {
	var (
		f     adminFlags
		every time.Duration
	)
	c := &cobra.Command{
		Use:   "retain (-f TASK | --task NAME) --nats URL [--every 1h]",
		Short: "remove the records of a task's old rounds, with an administrator's credentials",
		Long: `retain removes from the broker what nobody needs any more: the rounds, attempts, claims, closes and batches that are older than
schedule.retention of the task and more than 1,000 rounds behind the newest. The task, the stage's key and the end stay, and so do model and
ledger, which are in the learner's state folder. A device that was away for longer, and took part in a round that is removed, counts itself as
having taken part.

Once, or with --every again and again until it is stopped. learner run does it itself where its credentials let it, as with --embedded and on a
broker without accounts; it may run twice, and beside learner run.`,
		Example: `  learner retain --task a9a --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --every 1h`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(false)
			if err != nil {
				return err
			}
			if c.Flags().Changed("every") && every < minEvery {
				return cli.Usagef("--every %v: want at least %v, or leave it out for once", every, minEvery)
			}
			if config.Logger, err = f.log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			all, err := runadmin.Retain(c.Context(), config, every, func(one runadmin.Retained) {
				config.Logger.Info("removed records of old rounds", "task", one.Task, "newest_round", one.Newest, "before_round",
					one.Before,
					"records", one.Records)
			})
			if err != nil {
				return cli.Classify(brokerErrors(err), cli.Is(cli.ExitTransient, runadmin.ErrNotAnnounced))
			}
			return f.json.Print(c.OutOrStdout(), all, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, retained(all))
				return err
			})
		},
	}
	f.Flags(c.Flags())
	c.Flags().DurationVar(&every, "every", 0, "again after each `TIME`, such as 1h, until interrupted (default: once)")
	return c
}

// retained describes what was removed, or why nothing was.
func retained(all runadmin.Retained) string {
	switch {
	case all.Retention == "":
		return fmt.Sprintf("task %s keeps all of its records", all.Task)
	case all.Before > 0:
		return fmt.Sprintf("task %s: %d records of rounds below %d removed, older than %s; the newest is round %d",
			all.Task, all.Records, all.Before, all.Retention, all.Newest)
	}
	return fmt.Sprintf(
		"task %s: no records removed: no round is older than %s and more than %d rounds behind the newest, %d",
		all.Task, all.Retention, stream.KeptRounds, all.Newest)
}
