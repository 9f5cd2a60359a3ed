package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/run/runadmin"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
)

// restored is the JSON output of learner restore.
type restored struct {
	runadmin.Restored
	Next string `json:"next"`
}

func newRestore() *cobra.Command {
	var f restFlags
	c := &cobra.Command{
		Use:   "restore BACKUP --state DIR --nats URL",
		Short: "make a state folder from a backup",
		Long: `restore copies a backup to a state folder that is missing or empty. Before it writes
anything, it verifies the ledger and compares the backup with the records of the broker.
It refuses if the broker's records are older than the backup, or belong to another
learner. If the broker has gone on since the backup, restore succeeds, and the learner
then applies the batches on the broker again. If the task had ended by the time of the
backup, an older broker is accepted, too: the learner needs only to keep that end.

An empty folder may be a mount point. If restore is killed halfway, nothing opens the
folder: empty it and restore again.`,
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
			out.Restored, err = runadmin.Restore(c.Context(), args[0], rest)
			if err != nil {
				return cli.Classify(restErrors(err), cli.Is(cli.ExitUsage, fs.ErrExist), cli.Class{Code: cli.ExitTransient,
					Is: disk.Full})
			}
			switch {
			case out.Older:
				out.Next += " and, the first time, --accept-rollback: the broker has gone on since the backup"
			case out.Endless:
				out.Next += ", before stages and publishers: the task has ended, and the broker, which may be older, does not say so; " +
					"the learner puts that there, and all stop"
			}
			return f.json.Print(c.OutOrStdout(), out, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: task %s at round %d, epsilon %s%s; chain intact\nnext: %s\n",
					f.dir, out.Task, out.Round, cli.Upper(out.EpsilonSpent, 6), out.Assuming(), out.Next)
				return err
			})
		},
	}
	f.add(c, "error", "state `DIR` to write to: a folder that is missing or empty", "")
	return c
}

func newBackup() *cobra.Command {
	var (
		dir, out string
		asJSON   cli.JSON
	)
	c := &cobra.Command{
		Use:   "backup --state DIR -o DIR2",
		Short: "copy the state of a learner, running or not",
		Long: `backup copies the committed model, cursor and privacy ledger to a new state folder. It
asks a running learner over its control socket; the learner goes on. When the command
ends, the copy is complete, synced and its ledger verified, or there is no copy. The
backup does not hold the broker's streams (with --embedded they are below the state
folder) nor the identity file.`,
		Example: "  learner backup --state /var/lib/panlearn/a9a -o /backup/a9a-monday",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" || out == "" {
				return cli.Usagef("want --state DIR and -o DIR2")
			}
			s, err := runadmin.Backup(c.Context(), dir, out)
			if errors.Is(err, fs.ErrExist) {
				return cli.Usagef("-o %s: it exists: give another name, or remove it first", out)
			}
			if err != nil {
				return cli.Classify(err, cli.As[*state.VersionError](cli.ExitUsage), cli.Is(cli.ExitTransient, state.ErrLocked),
					cli.Class{Code: cli.ExitTransient, Is: disk.Full})
			}
			return asJSON.Print(c.OutOrStdout(), s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: task %s at round %d, epsilon %s%s; chain intact\n", out, s.Task, s.Round,
					cli.Upper(s.EpsilonSpent, 6), s.Assuming())
				return err
			})
		},
	}
	c.Flags().StringVar(&dir, "state", "", "state `DIR` of the learner, running or not")
	c.Flags().StringVarP(&out, "output", "o", "", "`DIR2` of the copy, which must not exist")
	asJSON.Flag(c.Flags())
	return c
}

func newFinish() *cobra.Command {
	var (
		f   restFlags
		now bool
	)
	c := &cobra.Command{
		Use:   "finish --state DIR [--nats URL]",
		Short: "end a task before its last step, or one without end",
		Long: `finish ends a task for good. A signed record, the End, tells the stage and the publishers
to stop, and the model of the last round is the final one. finish asks a running learner
over its control socket. If none runs, give --nats and --identity, and finish ends the
task itself.

If a round is announced, finish waits for its batch and applies it, because the round's
users have been asked. With --now the round is given up unless its batch is there. A round
that is given up stays charged in the ledger. On a task that has already ended, finish
does nothing: exit code 0. If you interrupt finish while it waits, a running learner still
ends the task after the round. If the learner stops before that, run finish again.`,
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
			s, err := runadmin.Finish(c.Context(), runadmin.FinishConfig{AtRest: rest, Now: now})
			if errors.Is(err, runadmin.ErrNoLearner) {
				return cli.Usagef(
					"%s: %w: name the broker with --nats; a learner fit is asked while it runs, so start its command again first",
					f.dir, err)
			}
			if err != nil {
				return restErrors(err)
			}
			return f.json.Print(c.OutOrStdout(), s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "task %s has ended after round %d: %s\nepsilon %s of %g, delta %g%s\n",
					s.Task, s.Round, s.EndReason, cli.Upper(s.EpsilonSpent, 6), s.EpsilonBudget, s.DeltaSpent, s.Assuming())
				return err
			})
		},
	}
	f.add(c, "info", "state `DIR` of the learner, running or not", ", if no learner runs")
	c.Flags().BoolVar(&now, "now", false, "give up an announced round without a batch instead of waiting for it")
	return c
}

// restFlags holds the flags of commands that act for the learner of a state folder while none runs.
type restFlags struct {
	broker        cli.Broker
	log           cli.Log
	dir, identity string
	json          cli.JSON
}

func (f *restFlags) add(c *cobra.Command, logLevel, dir, identity string) {
	c.Flags().StringVar(&f.dir, "state", "", dir)
	c.Flags().StringVar(&f.identity, "identity", "", "`FILE` of the learner's signing key"+identity+
		" (default: in the user's configuration folder)")
	f.broker.Flags(c.Flags())
	f.log.Flags(c.Flags(), logLevel)
	f.json.Flag(c.Flags())
}

func (f *restFlags) config(c *cobra.Command) (runadmin.AtRest, error) {
	if err := f.broker.Validate(); err != nil {
		return runadmin.AtRest{}, err
	}
	logger, err := f.log.Logger(c.ErrOrStderr())
	return runadmin.AtRest{StateDir: f.dir, Broker: f.broker.Broker, Logger: logger,
		Identity: func() (*seal.Identity, error) { return existingIdentity(f.identity) }}, err
}

// restErrors gives the errors of commands with restFlags their exit codes.
func restErrors(err error) error {
	return cli.Classify(brokerErrors(err), cli.As[*state.VersionError](cli.ExitUsage), cli.Is(cli.ExitTransient,
		state.ErrLocked), cli.Is(cli.ExitTransient, natsjs.ErrNoStream))
}

// existingIdentity loads the learner's identity, which a command that goes on with a task never makes.
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
