package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
	"github.com/panlearn/panlearn/shuffle/stage/markfile"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func newShuffle() *cobra.Command {
	var (
		broker                     cli.Broker
		log                        cli.Log
		profiles                   cli.Profiles
		name, identityFile, listen string
		state, helperKey, role     string
		tasks                      string
		lease, drain               time.Duration
		workers                    int
	)
	c := &cobra.Command{
		Use:   "shuffle (--task NAME | --tasks DIR) --nats URL",
		Short: "run the shuffle stage of a task, or the helper of a task of two operators",
		Long: `shuffle opens the reports of a round with a key that is only in this process's memory,
adds them up, and releases one batch. Of several processes for one task one works and the
others are on standby. It ends when the task ends.

With --tasks one process runs the stages of the tasks of all files in a folder. It uses
only the names of the tasks. Files may be added and removed while it runs. A task that
fails is tried again and does not disturb the others. With --role helper it runs the
helpers of the tasks that declare two operators, with one --state and one pair of pinned
keys for all.

It is the trusted party of the shuffle model: run it apart from the learner, and forbid
core dumps and swap for it.

In --state it marks each round before it claims it. If the broker loses a record that it
acknowledged, a marked round is void and is not opened again, and of the processes on one
machine that share the folder only one claims a round. The folder holds nothing about
users and belongs to one machine: do not restore it from a backup.

SIGTERM drops the open attempt: another process opens the round again, and its users are
asked again or, under pan and shuffle+pan, drop out. With --drain-timeout the round goes
on for at most that long, and the process ends after it.

With --role helper it is the second operator of privacy.trust: split, run by another
organisation: see ingest keygen helper. Its --state is the folder that keygen made; one
process holds it at a time. --identity, --helper-key and --drain-timeout are flags of the
leader.`,
		Example: `  ingest shuffle --task a9a --nats nats://127.0.0.1:4222 --identity stage.key
  ingest shuffle --tasks /etc/panlearn/tasks --nats nats://127.0.0.1:4222 --identity stage.key --http 9091
  ingest shuffle --role helper --task a9a --nats tls://broker.example:4222 --state ./helper --stage-key KEY --learner-key KEY`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var task stream.Task
			var list many.List
			var err error
			if tasks == "" {
				if task, err = stream.ParseTask(name); err != nil {
					err = fmt.Errorf("--task: %w", err)
				}
			} else if err = cli.OfOneTask(c, "task"); err == nil {
				list, err = many.NewFolder(tasks)
			}
			if err != nil {
				return cli.Usage(err)
			}
			if broker.URL == "" {
				return cli.Usagef("--nats: name the broker")
			}
			if err := broker.Validate(); err != nil {
				return err
			}
			logger, err := log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			if lease < stage.MinLeaseTTL || lease > stage.MaxLeaseTTL {
				return cli.Usagef("--lease %v: want %v to %v", lease, stage.MinLeaseTTL, stage.MaxLeaseTTL)
			}
			if workers < 0 || workers > stage.MaxWorkers {
				return cli.Usagef("--workers %d: want 1 to %d, or 0 for one on each processor", workers, stage.MaxWorkers)
			}
			if drain < 0 {
				return cli.Usagef("--drain-timeout %v: want at least 0", drain)
			}
			if role == roleHelper {
				for _, name := range []string{"identity", "helper-key", "drain-timeout"} {
					if c.Flags().Changed(name) {
						return cli.Usagef("--%s with --role helper: it is the leader's; a helper's key is in its --state", name)
					}
				}
				return helperOf(c, broker, &log, &profiles, logger, helperFlags{task: task, tasks: list, state: state,
					listen: listen, lease: lease, workers: workers})
			}
			if role != roleLeader {
				return cli.Usagef("--role %q: want %s or %s", role, roleLeader, roleHelper)
			}
			if helperKey != "" {
				if identityFile, err = leaderKey(identityFile, state); err != nil {
					return err
				}
				if err := makeLeader(state, logger); err != nil {
					return err
				}
			}
			config := runstage.Config{Broker: broker.Broker, Config: stage.Config{Task: task, Workers: workers, Drain: drain,
				LeaseTTL: lease, Logger: logger}}
			if config.Identity, err = cli.Identity(identityFile, "stage", logger); err != nil {
				return err
			}
			if config.LearnerKey, err = cli.PublicKey(c.Flags(), "learner-key"); err != nil {
				return err
			}
			if config.Leader.HelperKey, err = cli.PublicKey(c.Flags(), "helper-key"); err != nil {
				return err
			}
			if config.Marks, err = marks(state, logger); err != nil {
				return err
			}
			if helperKey != "" {
				if config.Leader.Folder, err = leaderfile.Open(state, config.Identity.Public()); err != nil {
					return leaderRefused(err)
				}
			}
			if listen != "" {
				if config.HTTP, err = cli.Listen("--http", listen); err != nil {
					return err
				}
				defer config.HTTP.Close()
			}
			defer log.Steer(logger)()
			stop, err := profiles.Serve(c.Context(), logger)
			if err != nil {
				return err
			}
			defer stop()
			run := func() error { return runstage.Run(c.Context(), config) }
			if list != nil {
				run = func() error { return runstage.RunMany(c.Context(), config, list) }
			}
			return cli.Classify(run(), cli.Is(cli.ExitRefused, stage.ErrFolder), cli.Is(cli.ExitRefused, stage.ErrHidden),
				cli.As[*natsjs.ConfigError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
				cli.Is(cli.ExitTransient, natsjs.ErrNoStream), cli.Is(cli.ExitTransient, natsjs.ErrUnreachable))
		},
	}
	broker.Flags(c.Flags())
	log.Flags(c.Flags(), "info")
	profiles.Flags(c.Flags())
	c.Flags().StringVar(&name, "task", "", "`NAME` of the task")
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of the tasks of this process")
	c.Flags().StringVar(&identityFile, "identity", "",
		"`FILE` of the stage's signing key, created if missing (default: in the user's configuration folder; with "+
			"--helper-key "+leaderfile.KeyFile+" in --state)")
	c.Flags().String("learner-key", "",
		"public `KEY` of the learner in hexadecimal (default: trust the first one seen)")
	c.Flags().StringVar(&helperKey, "helper-key", "",
		"public `KEY` of the other operator in hexadecimal: needed for tasks of trust split")
	c.Flags().StringVar(&role, "role", roleLeader,
		"`ROLE` of this operator: leader, or the helper of a task of trust split")
	c.Flags().String("stage-key", "",
		"with --role helper: public `KEY` of the leader in hexadecimal, as its operator told it")
	c.Flags().StringVar(&state, "state", "",
		"`DIR` of the marks of claimed rounds, created if missing; with --role helper the folder that keygen made (default: in the user's configuration folder)")
	c.Flags().DurationVar(&lease, "lease", stage.DefaultLeaseTTL,
		"how long the others wait for a process that fell silent; the broker must answer within a quarter of it")
	c.Flags().DurationVar(&drain, "drain-timeout", 0,
		"how long an open round may go on after SIGTERM, so that its users are not lost; a second signal ends it")
	c.Flags().IntVar(&workers, "workers", 0,
		"most reports opened at a time; under pan and shuffle+pan one (default: one on each processor)")
	c.Flags().StringVar(&listen, "http", "",
		"`ADDR` for /metrics, /status, /healthz and /readyz, such as 127.0.0.1:9091; a port alone listens on this machine only")
	return c
}

// marks opens the folder of marks. Where none was named and the default cannot be written, the stage runs without.
func marks(dir string, log *slog.Logger) (stage.Marks, error) {
	if dir != "" {
		m, err := markfile.Open(dir)
		if err != nil {
			return nil, cli.Usagef("--state: %w", err)
		}
		return m, nil
	}
	base, err := os.UserConfigDir()
	if err == nil {
		var m *markfile.Marks
		if m, err = markfile.Open(filepath.Join(base, "panlearn", "claimed")); err == nil {
			return m, nil
		}
	}
	log.Warn(
		"no folder for the marks of claimed rounds, so they are forgotten when this process ends; name one with --state",
		"error", err)
	return nil, nil
}
