package main

import (
	"io/fs"
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

func newRun() *cobra.Command {
	var (
		f                            taskFlags
		broker                       cli.Broker
		log                          cli.Log
		profiles                     cli.Profiles
		ownBroker, exit, rollback    bool
		listen, dir, identity, serve string
		relay, tasks                 string
		reports, seal                string
		stages                       []string
		bytes                        int64
	)
	c := &cobra.Command{
		Use:   "run (-f TASK | --tasks DIR) (--nats URL | --embedded [--listen ADDR] [--relay ADDR]) --state DIR",
		Short: "run a task, or many: the long-lived learner",
		Long: `run announces rounds, consumes each batch exactly once, and commits model, cursor and
privacy ledger in one write. It may be killed at any moment: the same command continues
where it stopped. snapshot, status and ledger work while it runs.

With --embedded it also runs a NATS server, which keeps its streams below --state.
--listen lets other processes of this machine reach that server, and --relay lets devices
take part over HTTP (ingest publish --relay). --tls-cert and --tls-key are then the
server's; with --tls-ca its clients need certificates. To devices, learner and broker are
then one party. It sees who sends when, it chooses whose reports reach the stage, and it
acknowledges what was stored. A device's privacy ledger does not rely on acknowledgements;
the honest fraction of a cohort does rely on the broker.

With --tasks one process runs the task of each file in a folder. Files may be added and
removed while it runs: a new one is started; a removed one is stopped, and its state
folder, --state/NAME, stays. A task that fails is tried again and does not disturb the
others.

A state folder that is an older copy of itself is refused. With --accept-rollback the
learner applies the batches that are on the broker again, which leads to the same bytes.`,
		Example: `  learner run -f deploy/tasks/a9a.yaml --embedded --listen 127.0.0.1:4222 --state ./state --exit-when-done
  learner run -f task.yaml --nats nats://broker:4222 --state /var/lib/panlearn --http 127.0.0.1:9090
  learner run --tasks /etc/panlearn/tasks --nats nats://broker:4222 --state /var/lib/panlearn --http 9090`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var spec *task.Spec
			var list many.List
			var err error
			if tasks == "" {
				if c.Flags().Changed("seal") {
					f.sets = append(f.sets, "privacy.seal="+seal)
				}
				spec, err = f.load()
			} else if err = cli.OfOneTask(c, "task-file", "set", "seal", "exit-when-done", "accept-rollback"); err == nil {
				list, err = many.NewFolder(tasks)
			}
			if err != nil {
				return cli.Usage(err)
			}
			switch {
			case (broker.URL == "") == !ownBroker:
				return cli.Usagef("want exactly one of --nats URL and --embedded")
			case listen != "" && !ownBroker:
				return cli.Usagef("--listen goes with --embedded")
			case relay != "" && !ownBroker:
				return cli.Usagef("--relay goes with --embedded: beside a broker, run ingest relay")
			case dir == "":
				return cli.Usagef("--state: name a folder for the learner's state")
			}
			memory := false
			if spec != nil {
				if memory, err = memoryReports(reports, spec.Privacy.Trust); err != nil {
					return err
				}
			}
			if err := broker.Validate(); err != nil {
				return err
			}
			progress := cli.NewRounds(c.ErrOrStderr())
			defer progress.Close()
			logger, err := log.Logger(progress)
			if err != nil {
				return err
			}
			config := runlearner.Config{Spec: spec, StateDir: dir, Embedded: ownBroker, Listen: listen, Replicas: broker.Replicas,
				Broker: broker.Broker, ExitWhenDone: exit, MemoryReports: memory, ReportBytes: bytes}
			config.AcceptRollback, config.Logger = rollback, logger
			if list == nil {
				config.Observer = progress.Observer()
			}
			if config.Identity, err = cli.Identity(identity, "learner", logger); err != nil {
				return err
			}
			if config.StageKey, err = cli.PublicKey(c.Flags(), "stage-key"); err != nil {
				return err
			}
			if serve != "" {
				if config.HTTP, err = cli.Listen("--http", serve); err != nil {
					return err
				}
				defer config.HTTP.Close()
			}
			if relay != "" {
				if config.Relay, err = cli.Listen("--relay", relay); err != nil {
					return err
				}
				defer config.Relay.Close()
				if at, ok := config.Relay.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
					return cli.Usagef("--relay %q: want a loopback address, such as 127.0.0.1:8095: it asks for no token", relay)
				}
			}
			defer log.Steer(logger)()
			stop, err := profiles.Serve(c.Context(), logger)
			if err != nil {
				return err
			}
			defer stop()
			switch {
			case len(stages) > 0 && serve == "":
				return cli.Usagef("--stage-http goes with --http, whose page shows it")
			case len(stages) > 0:
				if config.Stages, err = dashboard.NewStages(stages); err != nil {
					return cli.Usagef("--stage-http: %w", err)
				}
			}
			run := func() error { return runlearner.Run(c.Context(), config) }
			if list != nil {
				run = func() error {
					return runlearner.RunMany(c.Context(), config, list, func(e many.Entry) (bool, error) {
						return memoryReports(reports, e.Spec.Privacy.Trust)
					})
				}
			}
			return cli.Classify(run(), cli.Is(cli.ExitUsage, runlearner.ErrPin), cli.As[*state.BudgetError](cli.ExitRefused),
				cli.Is(cli.ExitTransient, state.ErrLocked), cli.As[*state.VersionError](cli.ExitUsage),
				cli.As[*natsjs.ConfigError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
				cli.Is(cli.ExitTransient, natsjs.ErrNoStream), cli.Is(cli.ExitTransient, natsjs.ErrUnreachable),
				cli.Is(cli.ExitTransient, embedded.ErrLatched), cli.Class{Code: cli.ExitTransient, Is: disk.Full})
		},
	}
	f.flags(c.Flags())
	broker.Flags(c.Flags())
	log.Flags(c.Flags(), "info")
	profiles.Flags(c.Flags())
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of the tasks to run in this process")
	c.Flags().BoolVar(&ownBroker, "embedded", false, "run a NATS server in this process")
	c.Flags().StringVar(&listen, "listen", "", "loopback `ADDR` of the embedded server, such as 127.0.0.1:4222")
	c.Flags().StringVar(&relay, "relay", "",
		"loopback `ADDR` of a relay in this process, such as 8095, for devices over HTTP; with --embedded")
	c.Flags().StringVar(&dir, "state", "", "`DIR` of the learner's state, created if missing; with --tasks one folder for each task in it")
	c.Flags().StringVar(&identity, "identity", "",
		"`FILE` of the learner's signing key, created if missing (default: in the user's configuration folder)")
	c.Flags().String("stage-key", "",
		"public `KEY` of the shuffle stage in hexadecimal, needed for tasks of trust split (default: trust the first one seen)")
	c.Flags().StringVar(&serve, "http", "",
		"`ADDR` for a live page at /, and /metrics, /healthz, /readyz, /v1/snapshot and /v1/history, such as 127.0.0.1:9090; a port alone listens on this machine only")
	c.Flags().StringArrayVar(&stages, "stage-http", nil,
		"`URL` of an ingest shuffle --http, such as http://stage:9091: the page then shows how full the round is, and whether a stage works; repeatable, once for each process, also on standby")
	c.Flags().StringVar(&reports, "reports", "",
		"where a new task's broker keeps sealed reports: file, or memory (faster; lost with the broker) "+
			"(default: file, and memory under the trusts pan and shuffle+pan)")
	reportBytesFlag(c.Flags(), &bytes)
	c.Flags().StringVar(&seal, "seal", "hpke",
		"none: reports are not encrypted, for benchmarks and closed networks (overrides privacy.seal)")
	c.Flags().BoolVar(&rollback, "accept-rollback", false,
		"with a state folder that is an older copy: apply the batches on the broker again")
	c.Flags().BoolVar(&exit, "exit-when-done", false, "exit when the task has ended instead of serving on")
	return c
}

func reportBytesFlag(flags *pflag.FlagSet, bytes *int64) {
	flags.Int64Var(bytes, "report-bytes", 0,
		"`BYTES` reserved at the broker for the waiting reports of a new task "+
			"(default: twice what four cohorts of single reports take, from 256 MiB to 1 GiB; in memory 256 MiB)")
}

// memoryReports reports whether a new task's sealed reports stay in the broker's memory. Under the trusts with floors
// they do unless --reports is file: together with the key of an attempt, which lies in the stage's memory, a recorded
// report can be read, and no floor is under it. It returns a usage error for other values of where.
func memoryReports(where string, trust accounting.Trust) (bool, error) {
	switch where {
	case "file":
		return false, nil
	case "memory":
		return true, nil
	case "":
		return trust.HasIntruder(), nil
	}
	return false, cli.Usagef("--reports %q: want file or memory", where)
}
