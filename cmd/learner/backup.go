package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	"github.com/panlearn/panlearn/state"
)

func newBackup() *cobra.Command {
	var (
		dir, out string
		asJSON   bool
	)
	c := &cobra.Command{
		Use:   "backup --state DIR -o DIR2",
		Short: "copy the state of a learner, running or not",
		Long: `backup writes what is committed, model, cursor and privacy ledger, to a new state folder. A learner that runs is asked over
its control socket and goes on. The copy is complete, synced and its ledger verified when the command ends, or it is not there.
The streams of the broker, with --embedded below the state folder, and the identity file are not in it.`,
		Example: "  learner backup --state /var/lib/panlearn/a9a -o /backup/a9a-monday",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" || out == "" {
				return cli.Usagef("want --state DIR and -o DIR2")
			}
			s, err := admin.Backup(c.Context(), dir, out)
			if errors.Is(err, fs.ErrExist) {
				return cli.Usagef("-o %s: it exists: give another name, or remove it first", out)
			}
			if err != nil {
				return cli.Classify(err, cli.As[*state.VersionError](cli.ExitUsage), cli.Is(cli.ExitTransient, state.ErrLocked),
					cli.Is(cli.ExitTransient, syscall.ENOSPC), cli.Is(cli.ExitTransient, syscall.EDQUOT))
			}
			return cli.Result(c.OutOrStdout(), asJSON, s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: task %s at round %d, epsilon %s, chain intact\n", out, s.Task, s.Round, cli.Upper(s.EpsilonSpent, 6))
				return err
			})
		},
	}
	c.Flags().StringVar(&dir, "state", "", "state `DIR` of the learner, running or not")
	c.Flags().StringVarP(&out, "output", "o", "", "`DIR2` of the copy, which must not exist")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
