package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Roles of shuffle.
const (
	roleLeader = "leader"
	roleHelper = "helper"
)

// folderWait bounds the time for which a helper waits for the one before it to let go of the folder.
const folderWait = 10 * time.Second

// helperFolder returns the folder of a helper: the one that was named, or the default.
func helperFolder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", cli.Usagef("--state: no configuration folder for this user (%v): name a folder", err)
	}
	return filepath.Join(base, "panlearn", "helper"), nil
}

// helperFlags are the flags of shuffle that a helper has, after those that all share.
type helperFlags struct {
	task          stream.Task
	tasks         many.List // instead of task; nil: it is of one
	state, listen string
	lease         time.Duration
	workers       int
}

// helperOf runs a helper as the flags of shuffle say.
func helperOf(c *cobra.Command, broker cli.Broker, log *cli.Log, profiles *cli.Profiles, logger *slog.Logger,
	f helperFlags) error {
	config := helper.Config{Task: f.task, Lease: f.lease, Workers: f.workers, Logger: logger}
	var err error
	if config.LeaderKey, err = cli.PublicKey(c.Flags(), "stage-key"); err != nil {
		return err
	}
	if config.LearnerKey, err = cli.PublicKey(c.Flags(), "learner-key"); err != nil {
		return err
	}
	defer log.Steer(logger)()
	stop, err := profiles.Serve(c.Context(), logger)
	if err != nil {
		return err
	}
	defer stop()
	return runHelper(c, broker.Broker, config, f.tasks, f.state, f.listen)
}

// runHelper runs the helper of one task, or of each task of a list, whose pinned keys are in config.
func runHelper(c *cobra.Command, broker run.Broker, config helper.Config, tasks many.List, state, listen string) error {
	if config.LeaderKey == nil || config.LearnerKey == nil {
		return cli.Usagef("--role helper: pin both by --stage-key and --learner-key, as those who have the keys told them: " +
			"two operators trust nothing at first use")
	}
	dir, err := helperFolder(state)
	if err != nil {
		return err
	}
	own, err := folder.Open(dir, folderWait)
	if err != nil {
		return cli.Classify(err, cli.Is(cli.ExitRefused, folder.ErrOlder), cli.Is(cli.ExitTransient, disk.ErrHeld),
			cli.Is(cli.ExitUsage, fs.ErrNotExist))
	}
	defer own.Close()
	config.Folder, config.Identity = own, own.Identity()
	all := runstage.HelperConfig{Config: config, Broker: broker}
	if listen != "" {
		if all.HTTP, err = cli.Listen("--http", listen); err != nil {
			return err
		}
		defer all.HTTP.Close()
	}
	if tasks != nil {
		err = runstage.RunManyHelpers(c.Context(), all, tasks)
	} else {
		err = runstage.RunHelper(c.Context(), all)
	}
	return cli.Classify(err, cli.Is(cli.ExitRefused, folder.ErrOlder),
		cli.As[*natsjs.ConfigError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
		cli.Is(cli.ExitTransient, natsjs.ErrNoStream), cli.Is(cli.ExitTransient, natsjs.ErrUnreachable))
}

// newKeygen returns the command keygen, with the folders of two operators and the issuer's key below it.
func newKeygen() *cobra.Command {
	c := cli.NewKeygen("stage")
	c.AddCommand(newKeygenLeader(), newKeygenHelper(), newKeygenIssuer())
	return c
}

func newKeygenHelper() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "helper --state DIR",
		Short: "make the folder of a helper with its key, or print the public key of one that is there",
		Long: `helper makes the folder of the second operator of privacy.trust: split: its signing key,
and beside it the record of what it released. It prints the public key. The task file
names it as privacy.operators.helper, and the leader and the policies of devices pin it.

The folder is the identity. Keep it on one disk that outlives the process. Do not copy it,
back it up or restore it, and take no snapshot of its machine: a helper that forgets what
it released would release it twice. After a loss make a new folder: a new identity, and a
new task.`,
		Example: "  ingest keygen helper --state /var/lib/panlearn/helper",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := helperFolder(state)
			if err != nil {
				return err
			}
			key, _, err := folder.Create(dir)
			switch {
			case errors.Is(err, folder.ErrOlder):
				return cli.Classify(err, cli.Is(cli.ExitRefused, folder.ErrOlder))
			case err != nil:
				return cli.Usage(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%x\n", []byte(key))
			return err
		},
	}
	c.Flags().StringVar(&state, "state", "", "`DIR` of the helper (default: in the user's configuration folder)")
	return c
}
