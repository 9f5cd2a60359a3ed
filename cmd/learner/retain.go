package main

import (
	"errors"
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
		tasks string
		every time.Duration
	)
	c := &cobra.Command{
		Use:   "retain (-f TASK | --task NAME | --tasks DIR) --nats URL [--every 1h]",
		Short: "remove the records of a task's old rounds, with an administrator's credentials",
		Long: `retain deletes records on the broker that nobody needs any more: the rounds, attempts,
claims, closes and batches older than schedule.retention of the task and more than 1,000
rounds behind the newest. The task, the stage's key and the End stay, and so do model and
ledger, which are in the learner's state folder. A device that was away for longer, and
took part in a round that was deleted, counts itself as having taken part.

It runs once, or with --every again and again until it is stopped. learner run does the
same itself if its credentials allow it, as with --embedded and on a broker without
accounts. Running both, or retain twice, does no harm.

With --tasks it does this once for the task of each file in a folder, and goes on after a
task that fails: run it from a timer.`,
		Example: `  learner retain --task a9a --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --every 1h`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("every") && every < minEvery {
				return cli.Usagef("--every %v: want at least %v, or leave it out for once", every, minEvery)
			}
			if tasks != "" && every > 0 {
				return cli.Usagef("--every with --tasks: run it once, from a timer, which reads the folder each time")
			}
			configs, faults, err := f.configs(c, tasks)
			if err != nil {
				return err
			}
			logger, err := f.log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			var done []runadmin.Retained
			err = each(configs, faults, func(config runadmin.Config) error {
				config.Logger = logger
				all, err := runadmin.Retain(c.Context(), config, every, func(one runadmin.Retained) {
					logger.Info("removed records of old rounds", "task", one.Task, "newest_round", one.Newest, "before_round",
						one.Before, "records", one.Records)
				})
				if err != nil {
					return cli.Classify(brokerErrors(err), cli.Is(cli.ExitTransient, runadmin.ErrNotAnnounced))
				}
				done = append(done, all)
				return nil
			})
			if err != nil && tasks == "" {
				return err
			}
			var doc any = map[string][]runadmin.Retained{"tasks": done}
			if tasks == "" {
				doc = done[0]
			}
			return errors.Join(err, f.json.Print(c.OutOrStdout(), doc, func(w io.Writer) error {
				for _, one := range done {
					if _, err := fmt.Fprintln(w, retained(one)); err != nil {
						return err
					}
				}
				return nil
			}))
		},
	}
	f.flags(c.Flags())
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of many tasks")
	c.Flags().DurationVar(&every, "every", 0, "repeat after each `TIME`, such as 1h, until interrupted (default: once)")
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
