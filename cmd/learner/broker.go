package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runadmin"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// diagnosis is the JSON output of learner doctor.
type diagnosis struct {
	OK       bool                `json:"ok"` // no failure; there may be warnings
	Findings []natsadmin.Finding `json:"findings"`
}

func newDoctor() *cobra.Command {
	var (
		f         adminFlags
		role, dir string
		tasks     string
		routes    []string
		over      cli.Relayed
	)
	c := &cobra.Command{
		Use:   "doctor [--nats URL] [--state DIR] [-f TASK | --task NAME | --tasks DIR]",
		Short: "look for what is wrong with a broker, its streams, these credentials and a learner's state",
		Long: `doctor checks the connection, TLS, the server's version, clocks, JetStream's limits, the
task's streams and their copies, and what these credentials may do. Of a cluster it also
checks whether these credentials could join it as a server. With --state it checks the
learner's folder: which process holds it, its format, its ledger, the free space on its
disk, and, with --nats, whether the broker and the folder are of the same time. With -f it
lists the keys in which the task file differs from the task on the broker. With --relay it
asks the relay for the task and compares.

It leaves nothing behind. To test a permission it sends a message that no stream takes.
With an administrator's credentials it makes a stream as large as a task's reports
reserve, writes to it, and deletes it. Run doctor once with the credentials of each role:
only an administrator's show settings, free space, and what fills a full stream. Every
finding that is not ok says what to do. The exit code is 1 if there is a failure, and 0 if
there are only warnings.`,
		Example: `  learner doctor -f deploy/tasks/a9a.yaml --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --replicas 3
  learner doctor --task a9a --nats tls://broker:4222 --nkey stage.nk --tls-ca ca.pem --role stage
  learner doctor -f deploy/tasks/a9a.yaml --state /var/lib/panlearn/a9a --nats tls://broker:4222 --nkey learner.nk --tls-ca ca.pem`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if tasks != "" {
				if err := cli.OfOneTask(c, "task", "task-file", "set"); err != nil {
					return err
				}
			}
			config, err := f.config(true)
			if err != nil {
				return err
			}
			if over.URL != "" && f.broker.URL == "" {
				return cli.Usagef("--relay goes with --nats: what the relay serves is compared with the broker's")
			}
			if f.broker.URL == "" && dir == "" {
				return cli.Usagef("name the broker with --nats, the learner's folder with --state, or both")
			}
			config.Role, config.StateDir, config.Routes = natsadmin.Role(role), dir, routes
			if config.Relay, err = over.Config(); err != nil {
				return err
			}
			if config.Logger, err = f.log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			var d diagnosis
			if tasks != "" {
				d, err = examineAll(c.Context(), config, tasks)
			} else {
				d.Findings, err = examine(c.Context(), config)
			}
			if err != nil {
				return brokerErrors(err)
			}
			failures := 0
			for _, f := range d.Findings {
				if f.Status == natsadmin.Failure {
					failures++
				}
			}
			d.OK = failures == 0
			err = f.json.Print(c.OutOrStdout(), d, func(w io.Writer) error {
				for _, f := range d.Findings {
					if _, err := fmt.Fprintf(w, "%-7s  %s: %s\n", f.Status, f.Check, f.Text); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil && failures > 0 {
				err = fmt.Errorf("failures: %d; see the findings", failures)
			}
			return err
		},
	}
	f.flags(c.Flags())
	over.Flags(c.Flags(), "to compare what it serves with the broker's")
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of many tasks: list what is not ok in each")
	c.Flags().StringVar(&dir, "state", "", "state `DIR` of the learner, running or not; with --tasks of learner run --tasks")
	c.Flags().StringArrayVar(&routes, "route", nil,
		"`HOST:PORT` where a server of a cluster listens for the others, to check whether these credentials could join (default: port 6222 of each in --nats)")
	c.Flags().StringVar(&role, "role", "",
		"`ROLE` that the credentials are for: admin, learner, stage, helper or publisher (default: find out)")
	return c
}

// examine examines what a configuration names.
func examine(ctx context.Context, config runadmin.Config) (findings []natsadmin.Finding, err error) {
	trust := accounting.Shuffle
	if config.Spec != nil {
		trust = config.Spec.Privacy.Trust
	}
	if config.MemoryReports, err = memoryReports("", trust); err != nil {
		return nil, err
	}
	return runadmin.Doctor(ctx, config)
}

// ofServers has the checks of the broker's servers, which find the same for every task.
var ofServers = map[string]bool{"certificates": true, "links": true, "jetstream": true}

// examineAll examines every task of a folder, each with its state folder where config names the folder of all. It keeps
// what is not ok, what its servers are blamed for once, and counts the tasks.
func examineAll(ctx context.Context, config runadmin.Config, dir string) (d diagnosis, err error) {
	list, err := many.NewFolder(dir)
	if err != nil {
		return d, cli.Usagef("--tasks: %w", err)
	}
	entries, faults, err := list.Tasks()
	if err != nil {
		return d, cli.Usagef("--tasks: %w", err)
	}
	for _, f := range faults {
		d.Findings = append(d.Findings, natsadmin.Finding{Check: "task file", Status: natsadmin.Failure,
			Text: fmt.Sprintf("%s: %v", f.File, f.Err)})
	}
	well := 0
	for _, e := range entries {
		one := config
		one.Task, one.Spec = e.Name, e.Spec
		if config.StateDir != "" {
			one.StateDir = filepath.Join(config.StateDir, string(e.Name))
		}
		found, err := examine(ctx, one)
		if err != nil {
			return d, fmt.Errorf("task %s: %w", e.Name, err)
		}
		if d.add(e.Name, found) {
			well++
		}
	}
	d.Findings = append(d.Findings, natsadmin.Finding{Check: "tasks", Status: natsadmin.OK,
		Text: fmt.Sprintf("%d of %d have no finding", well, len(entries))})
	return d, nil
}

// add keeps what is not ok of a task, and reports whether all is.
func (d *diagnosis) add(name stream.Task, found []natsadmin.Finding) (well bool) {
	well = true
	for _, f := range found {
		if f.Status == natsadmin.OK {
			continue
		}
		well = false
		if !ofServers[f.Check] {
			f.Check = string(name) + ": " + f.Check
		}
		if !slices.Contains(d.Findings, f) {
			d.Findings = append(d.Findings, f)
		}
	}
	return well
}

type provisioned struct {
	Task    stream.Task             `json:"task"`
	Streams []natsadmin.StreamState `json:"streams"`
}

func newProvision() *cobra.Command {
	var (
		f       adminFlags
		tasks   string
		reports string
		bytes   int64
	)
	c := &cobra.Command{
		Use:   "provision (-f TASK | --task NAME | --tasks DIR) --nats URL",
		Short: "create a task's streams, with an administrator's credentials",
		Long: `provision creates the task's five streams and the consumer of its reports if they are
missing. It leaves what exists as it is. Where the guarantee would not hold on an existing
stream, provision lists the settings that differ and fails. It may be run again.

learner run creates missing streams itself if its credentials allow it, as they do on a
broker without accounts. With -f the size of one report is known, and the broker enforces
it.

With --tasks it does this for the task of each file in a folder, and goes on after a task
that fails.`,
		Example: `  learner provision -f deploy/tasks/a9a.yaml --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --replicas 3`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, faults, err := f.configs(c, tasks)
			if err != nil {
				return err
			}
			logger, err := f.log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			var done []provisioned
			err = each(all, faults, func(config runadmin.Config) error {
				trust := accounting.Shuffle
				if config.Spec != nil {
					trust = config.Spec.Privacy.Trust
				}
				config.ReportBytes, config.Logger = bytes, logger
				var err error
				if config.MemoryReports, err = memoryReports(reports, trust); err != nil {
					return err
				}
				list, err := runadmin.Provision(c.Context(), config)
				if err != nil {
					return brokerErrors(err)
				}
				done = append(done, provisioned{config.Task, list})
				return nil
			})
			if err != nil && tasks == "" {
				return err
			}
			var doc any = map[string][]provisioned{"tasks": done}
			if tasks == "" {
				doc = done[0]
			}
			return errors.Join(err, f.json.Print(c.OutOrStdout(), doc, func(w io.Writer) error {
				for _, one := range done {
					of := ""
					if tasks != "" {
						of = string(one.Task) + ": "
					}
					for _, s := range one.Streams {
						what := "was there"
						if s.Created {
							what = "created"
						}
						if _, err := fmt.Fprintf(w, "%s%-9s  %s, %s, %s\n", of, what, s.Name, natsadmin.Copies(s.Replicas),
							s.Storage); err != nil {
							return err
						}
					}
				}
				return nil
			}))
		},
	}
	f.flags(c.Flags())
	c.Flags().StringVar(&reports, "reports", "",
		"where sealed reports are kept: file, or memory (default: file, and memory under the trusts pan and shuffle+pan)")
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of many tasks")
	reportBytesFlag(c.Flags(), &bytes)
	return c
}

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
		Long: `remove deletes the task's five streams and everything in them: rounds, batches, the End.
Model and ledger are in the learner's state folder; remove does not touch it, nor the
folders of stage and devices. Stop the task's learner first: a learner that runs on an
ended task creates the streams again if its credentials allow it. A task that has not
ended is refused unless --force is given. After an interruption run remove again. If the
broker has no stream of that name, the exit code is 1.`,
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
			list, err := runadmin.Remove(c.Context(), config, force)
			if err != nil {
				return cli.Classify(brokerErrors(err), cli.Is(cli.ExitUsage, runadmin.ErrNotEnded))
			}
			if len(list) == 0 {
				return fmt.Errorf("no task %q is on this broker: none of its streams is there", config.Task)
			}
			return f.json.Print(c.OutOrStdout(), removed{config.Task, list}, func(w io.Writer) error {
				for _, name := range list {
					if _, err := fmt.Fprintf(w, "removed  %s\n", name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.flags(c.Flags())
	c.Flags().BoolVar(&force, "force", false, "also remove a task that has not ended, such as one whose learner is lost")
	return c
}

// adminFlags holds the flags shared by the commands that administer a broker.
type adminFlags struct {
	task   taskFlags
	name   string
	broker cli.Broker
	log    cli.Log
	json   cli.JSON
}

func (f *adminFlags) flags(flags *pflag.FlagSet) {
	f.task.flags(flags)
	flags.StringVar(&f.name, "task", "", "`NAME` of the task, instead of a task file")
	f.broker.Flags(flags)
	f.log.Flags(flags, "error") // denied probes are news to nobody
	f.json.Flag(flags)
}

// config returns the task and broker that the flags name. A missing one is an error unless optional.
func (f *adminFlags) config(optional bool) (c runadmin.Config, err error) {
	switch {
	case f.task.path != "" && f.name != "" || f.task.path == "" && f.name == "" && !optional:
		return c, cli.Usagef("want exactly one of -f TASK and --task NAME")
	case f.task.path == "" && len(f.task.sets) > 0:
		return c, cli.Usagef("--set goes with -f")
	case f.broker.URL == "" && !optional:
		return c, cli.Usagef("--nats: name the broker")
	}
	if err := f.broker.Validate(); err != nil {
		return c, err
	}
	name := f.name
	if f.task.path != "" {
		if c.Spec, err = f.task.load(); err != nil {
			return c, err
		}
		name = c.Spec.Name
	}
	if name != "" {
		if c.Task, err = stream.ParseTask(name); err != nil {
			return c, cli.Usagef("--task: %w", err)
		}
	}
	c.Broker, c.Replicas = f.broker.Broker, f.broker.Replicas
	return c, nil
}

// brokerErrors give the errors of a broker their exit codes.
func brokerErrors(err error) error {
	return cli.Classify(err, cli.As[*natsjs.ConfigError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
		cli.Is(cli.ExitTransient, natsjs.ErrUnreachable), cli.Is(cli.ExitTransient, natsjs.ErrUnavailable))
}
