package main

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
)

// restored is what restore prints.
type restored struct {
	admin.Restored
	Next string `json:"next"`
}

func newRestore() *cobra.Command {
	var f restFlags
	c := &cobra.Command{
		Use:   "restore BACKUP --state DIR --nats URL",
		Short: "put a backup in the place of a lost state folder",
		Long: `restore copies a backup to a state folder that is not there, or empty. It verifies the ledger, and holds the backup against
the records of the broker, before anything is written. A broker that is older than the backup, or belongs to another learner, is
refused. One that has gone on since is not: the learner then has to apply the standing batches again. Nor is one that is
older than the backup of a task that has ended: the learner has nothing to ask of it but to keep that end. An empty folder is filled
and may be a mount point; if that is killed half-way, nothing opens the folder: empty it and restore again.`,
		Example: "  learner restore /backup/a9a-monday --state /var/lib/panlearn/a9a --nats nats://broker:4222",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.dir == "" || f.broker.URL == "" {
				return cli.Usagef("want --state DIR and --nats URL")
			}
			rest, err := f.config(c)
			if err != nil {
				return err
			}
			out := restored{Next: "learner run with this --state"}
			out.Restored, err = admin.Restore(c.Context(), args[0], rest)
			if err != nil {
				return cli.Classify(restErrors(err), cli.Is(cli.ExitUsage, fs.ErrExist), cli.Is(cli.ExitTransient, syscall.ENOSPC),
					cli.Is(cli.ExitTransient, syscall.EDQUOT))
			}
			switch {
			case out.Older:
				out.Next += " and, the first time, --accept-rollback: the broker has gone on since the backup"
			case out.Endless:
				out.Next += ", before stages and publishers: the task has ended, and the broker, which may be older, does not say so; " +
					"the learner puts that there, and all stop"
			}
			return cli.Result(c.OutOrStdout(), f.json, out, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: task %s at round %d, epsilon %s, chain intact\nnext: %s\n", f.dir, out.Task, out.Round,
					cli.Upper(out.EpsilonSpent, 6), out.Next)
				return err
			})
		},
	}
	f.add(c, "error", "state `DIR` to make or to fill, which must not exist or be empty", "")
	return c
}
