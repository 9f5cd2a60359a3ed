package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/statefolder"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func newPublish() *cobra.Command {
	var (
		p        publisher
		web      gateway
		over     cli.Relayed
		broker   cli.Broker
		log      cli.Log
		profiles cli.Profiles
		metrics  string
		tasks    string
		sets     []string
	)
	c := &cobra.Command{
		Use:   "publish (-f TASK | --task NAME | --tasks DIR) (--nats URL | --relay URL) (--data FILE | --http ADDR --state DIR --http-token FILE)",
		Short: "publish each row of the input as one user's private report",
		Long: `publish turns each row into a clipped gradient at the announced model, randomizes and
seals it, and sends it once, or in an interactive phase once a round. A row waits for a
round that it can take part in. With --state, a run that was interrupted goes on without
sending a row twice. A row is known by its position in its file or, with --data -, in
standard input: do not reorder or prepend rows between runs. If the task declares
events.key, a row is known by that column: rows may be reordered, prepended and read
again, and a row without a key is not sent. --live is for standard input that never ends,
as from tail -F. It needs events.key, because after a restart such input repeats rows.

--check reports how the data fit the declaration, as learner check does, and sends
nothing: the exit code is 1 if no row fits. Without it, rows that do not fit take part as
zero vectors, and a warning says so.

A round learns from rows that come together. Sorted rows, above all rows sorted by label,
make a bad model. --shuffle N holds N rows and takes one of them at random each time; if N
is the number of rows, all orders are equally likely. The order follows from a random seed
in the state folder, so a later run with the same N goes on in the same order. A stream
waits for its first N rows.

If the task declares silos, a report is about many rows. In one pass each report is about
the next range of rows of a file, as many as the plan says; rows left at the end of a file
are not sent (left_over) until enough are added. In many passes all rows of all files
together, or of standard input up to its end, are one block, which answers every round:
nothing is sent before all is read. --state, which a silo needs, keeps how many rows the
block has and the noise that hides them. A later run may have more rows, which are left
over, and never fewer; the names and places of the files do not matter then. Under trust
local each silo draws the noise that its own number of rows and the max_epsilon of its
policy need.

A pattern in quotes, such as 'day-*.csv.gz', names several files, which are read in
lexical order. Their rows are known by file, so files may be added before a later run with
the same pattern, anywhere in the order; do not rename them. Files may be plain, gzip or
zstd, whatever their name. Parquet is read from files only. For idx, name the images and
the labels with a comma between them, or only the images if the labels are beside them
under the name that MNIST uses.

On a terminal two lines show the progress and what publish waits for; elsewhere the log
gets a line at most every ten seconds. If the input has ended and a round lacks users, it
prints how many. If it makes no progress for --patience, it ends with exit code 75. What
was sent stays charged in --state, and the same command learns the outcome later. Standard
input is waited for, however long it is silent: there --patience counts from its end.

publish does not trust the task's plan. It computes the epsilon again itself, and a task
that the policy does not allow gets nothing (exit code 3). A row that does not fit the
declaration is sent as the zero vector, so that taking part does not depend on content;
its line number is in the log of this process and nowhere else.

With --http, applications in any language post their users' events to this process, as
JSON, each with a key of its own that --state remembers (docs/reference/gateway.md;
/v1/openapi.json describes the interface). It listens on 127.0.0.1 unless you name another
address, and goes on until it is interrupted.

With --tasks one process publishes for the task of each file in a folder. --data names the
data by task: --data '/data/{task}.jsonl'. With --http instead, the paths below /v1/ of one
task are below /v1/tasks/NAME/ for each. All tasks share one --state, one policy and one
connection. Files may be added and removed while it runs. It goes on until it is
interrupted, and prints a summary for each task whose rows are settled. A task that fails
is tried again and does not disturb the others.

With --relay instead of --nats everything goes over HTTP to an ingest relay, and no
credentials of the broker are needed.`,
		Example: `  ingest publish -f deploy/tasks/a9a.yaml --nats nats://127.0.0.1:4222 --data a9a.gz --state ./devices
  ingest publish --task clicks --nats nats://broker:4222 --data 'day-*.parquet' --format parquet --state ./devices
  ingest publish --task clicks --nats nats://broker:4222 --http 8090 --http-token ./token --state ./devices
  tail -n +1 -F events.jsonl | ingest publish --task clicks --nats nats://broker:4222 --data - --live --state ./devices
  ingest publish -f clicks.yaml --data events.jsonl --check`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("%s: events come after --data: ingest publish --data %[1]s", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case over.URL != "" && broker.URL != "":
				return cli.Usagef("--nats and --relay exclude each other: name the broker, or the relay in front of it")
			case over.URL == "" && broker.URL == "" && !(p.check && p.taskFile != ""):
				return cli.Usagef("--nats: name the broker, or an ingest relay with --relay")
			}
			if p.data == "" && web.address == "" {
				return cli.Usagef("--data: name a file, or - for standard input")
			}
			if err := broker.Validate(); err != nil {
				return err
			}
			if c.Flags().Changed("seal") && p.taskFile != "" {
				sets = append(sets, "privacy.seal="+p.seal)
			}
			var list many.List
			var err error
			if tasks != "" {
				list, err = p.many(c, tasks, &web)
			} else {
				err = p.declare(sets)
			}
			if err != nil {
				return err
			}
			if p.config.Relay, err = over.Config(); err != nil {
				return err
			}
			var posted rundevice.HTTPConfig
			if web.address != "" {
				if posted, err = web.declare(&p); err != nil {
					return err
				}
			}
			if metrics != "" {
				if p.config.Metrics, err = cli.Listen("--metrics", metrics); err != nil {
					return err
				}
				defer p.config.Metrics.Close() // where nothing serves it yet
			}
			watch := new(rundevice.Watch)
			look := watch.Look
			if list != nil {
				look = func() (counts []any, waits, kind string) { return nil, "", "" } // of one task alone
			}
			show := cli.NewPublishing(c.ErrOrStderr(), look)
			defer show.Close()
			logger, err := log.Logger(show)
			if err != nil {
				return err
			}
			defer log.Steer(logger)()
			stop, err := profiles.Serve(c.Context(), logger)
			if err != nil {
				return err
			}
			defer stop()
			over.Warn(logger)
			cli.WarnOfShared(logger, "--http-token", web.tokenFile)
			p.config.Broker = broker.Broker
			p.config.Logger, p.config.Watch = logger, watch
			if list != nil {
				ended := func(s rundevice.TaskSummary) {
					if err := p.json.Print(c.OutOrStdout(), s, func(w io.Writer) error {
						_, err := fmt.Fprintf(w, "%s: %d events: %d counted, %d not counted\n", s.Task, s.Events, s.Counted, s.Uncounted)
						return err
					}); err != nil {
						logger.Error("cannot print a summary", "error", err)
					}
				}
				if posted.Listener != nil {
					return p.classified(rundevice.PublishHTTPMany(c.Context(), p.config, posted, list, ended))
				}
				return p.classified(rundevice.PublishMany(c.Context(), p.config, list, ended))
			}
			if p.check {
				return cli.Classify(p.inspect(c), cli.As[*task.FieldError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
					cli.As[*consent.RefusedError](cli.ExitRefused), cli.Is(cli.ExitTransient, natsjs.ErrUnreachable))
			}
			show.Log(logger)
			var summary device.Summary
			if posted.Listener != nil {
				summary, err = rundevice.PublishHTTP(c.Context(), p.config, posted)
			} else {
				summary, err = rundevice.Publish(c.Context(), p.config)
			}
			show.Close()
			if summary != (device.Summary{}) || err == nil {
				if printed := p.json.Print(c.OutOrStdout(), summary, func(w io.Writer) error {
					return printSummary(w, summary, watch.Standing(), p.state != "", err)
				}); err == nil {
					err = printed
				}
			}
			if p.state == "" && errors.Is(err, context.Canceled) && c.Context().Err() != nil {
				err = cli.Transient(
					errors.New("interrupted; without --state another run begins from nothing, and sends again what this one sent"))
			}
			return p.classified(err)
		},
	}
	broker.Flags(c.Flags())
	log.Flags(c.Flags(), "info")
	profiles.Flags(c.Flags())
	web.flags(c.Flags())
	over.Flags(c.Flags(), "instead of --nats")
	c.Flags().StringVarP(&p.taskFile, "task-file", "f", "", "the task `FILE`: what the announced task must declare")
	c.Flags().StringArrayVar(&sets, "set", nil, "override a `PATH=VALUE` of the task file; repeatable")
	c.Flags().StringVar(&tasks, "tasks", "", "`DIR` with the task files of the tasks of this process")
	c.Flags().StringVar(&p.task, "task", "", "`NAME` of the task, instead of a task file")
	cli.Data(c.Flags(), &p.data, "`FILE` of events, or a quoted pattern of files; gzip and zstd too; - for standard input")
	c.Flags().StringVar(&p.format, "format", "", task.FormatHelp())
	c.Flags().StringVar(&p.state, "state", "",
		"`DIR` that remembers which rows took part; without it a second run sends rows again")
	c.Flags().StringVar(&p.policy, "policy", "", "`FILE` with what these devices agree to (YAML)")
	c.Flags().StringVar(&p.seal, "seal", "hpke", "none: agree to a task whose reports the broker's operator can read")
	c.Flags().IntVar(&p.config.Bundle, "bundle", 1,
		"`N` users in one message, for a gateway; the broker sees their number")
	c.Flags().IntVar(&p.config.Shuffle, "shuffle", 0,
		"take one of `N` rows at random each time, which are held in memory; 0: in the order of the file")
	c.Flags().Uint64Var(&p.config.MaxBlockRows, "max-block-rows", device.DefaultMaxBlockRows,
		"hold at most `N` values of a silo's block: its rows times the declared values of a row")
	c.Flags().StringVar(&metrics, "metrics", "",
		"`ADDR` for /metrics, /healthz and /readyz, such as 127.0.0.1:9092; a port alone listens on this machine only")
	c.Flags().BoolVar(&p.live, "live", false,
		"standard input never ends and may repeat rows after a restart: rows are known by the task's events.key")
	c.Flags().DurationVar(&p.config.Patience, "patience", 10*time.Minute,
		"end with exit code 75 after so long without progress, for a stream after its end; 0: never")
	c.Flags().BoolVar(&p.check, "check", false, "report how the data fit the declaration, and send nothing")
	c.Flags().StringVar(&p.issuer, "issuer", "",
		"`URL` of the issuer's grants, for the tokens of a task with grants: pass, such as https://app.example/v1/tasks/clicks/grants")
	c.Flags().StringVar(&p.issuerToken, "issuer-token", "", "`FILE` with the token under which the gateway asks --issuer")
	p.json.Flag(c.Flags())
	return c
}

// classified gives an error its exit code.
func (p *publisher) classified(err error) error {
	return cli.Classify(err, cli.As[*consent.RefusedError](cli.ExitRefused), cli.As[*source.SchemaError](cli.ExitUsage),
		cli.As[*task.FieldError](cli.ExitUsage), cli.As[*natsjs.ConfigError](cli.ExitUsage),
		cli.Is(cli.ExitUsage, fs.ErrNotExist),
		cli.Is(cli.ExitUsage, rundevice.ErrNoKey), cli.Is(cli.ExitUsage, rundevice.ErrNoState),
		cli.As[*rundevice.ImpatientError](cli.ExitTransient), cli.Is(cli.ExitTransient, natsjs.ErrNoStream),
		cli.Is(cli.ExitTransient, natsjs.ErrUnreachable), cli.Class{Code: cli.ExitTransient, Is: disk.Full})
}

// many reads the folder of task files, and the flags common to all tasks.
func (p *publisher) many(c *cobra.Command, dir string, web *gateway) (many.List, error) {
	if err := cli.OfOneTask(c, "task", "task-file", "set", "seal", "check", "live"); err != nil {
		return nil, err
	}
	switch {
	case web.address != "" && p.data == "": // events are posted
	case p.data == "-" || !strings.Contains(p.data, rundevice.Placeholder):
		return nil, cli.Usagef("--data %s with --tasks: name each task's data by %s, such as '/data/%[2]s.jsonl'", p.data,
			rundevice.Placeholder)
	}
	switch {
	case p.config.Shuffle > 0 && web.address != "":
		return nil, cli.Usagef("--shuffle goes with --data: posted events are sent as they come")
	case p.state == "":
		return nil, cli.Usagef("--tasks goes with --state: a task that is started again would send its rows again")
	}
	if err := p.common(); err != nil {
		return nil, err
	}
	list, err := many.NewFolder(dir)
	return list, cli.Usage(err)
}

type publisher struct {
	taskFile, task, data, format, state, policy, seal string
	issuer, issuerToken                               string
	live, check                                       bool
	json                                              cli.JSON
	config                                            rundevice.Config
}

// declare reads the files that the flags name.
func (p *publisher) declare(sets []string) error {
	switch {
	case (p.taskFile == "") == (p.task == ""):
		return cli.Usagef("want exactly one of -f TASK and --task NAME")
	case p.taskFile == "" && len(sets) > 0:
		return cli.Usagef("--set goes with -f")
	case p.seal != "hpke" && p.seal != "none":
		return cli.Usagef("--seal %q: want hpke or none", p.seal)
	}
	name := p.task
	if p.taskFile != "" {
		spec, err := task.Load(p.taskFile, sets)
		if err != nil {
			return cli.Usage(err)
		}
		p.config.Spec, name = spec, spec.Name
	}
	var err error
	if p.config.Task, err = stream.ParseTask(name); err != nil {
		return cli.Usagef("--task: %w", err)
	}
	if err := p.common(); err != nil {
		return err
	}
	switch {
	case p.config.Patience < 0:
		return cli.Usagef("--patience %v: want at least 0", p.config.Patience)
	case p.config.Shuffle < 0:
		return cli.Usagef("--shuffle %d: want a number of rows", p.config.Shuffle)
	case p.config.Shuffle > 0 && p.data == "":
		return cli.Usagef("--shuffle goes with --data: posted events are sent as they come")
	case p.data == "" && !p.check: // --http
	case p.live && p.data != "-":
		return cli.Usagef("--live goes with --data -: the rows of a file are the same in every run")
	case p.check && p.data == "":
		return cli.Usagef("--check goes with --data")
	case p.live && p.config.Spec != nil && p.config.Spec.Events.Key == "" && !p.config.Spec.Privacy.ByUser():
		return cli.Usage(rundevice.ErrNoKey)
	case p.data == "-":
		p.config.Source = p.data
	default:
		if p.config.Source, err = filepath.Abs(p.data); err != nil {
			return cli.Usagef("--data: %w", err)
		}
	}
	return nil
}

// common reads the flags common to all tasks.
func (p *publisher) common() (err error) {
	if p.policy != "" {
		if p.config.Policy, err = readPolicy(p.policy); err != nil {
			return err
		}
		if total := p.config.Policy; (total.MaxTotalEpsilon > 0 || total.MaxTotalDelta > 0) && p.state == "" {
			return cli.Usagef("--policy %s bounds the total over tasks: name the --state folder whose ledger knows it", p.policy)
		}
	}
	if err := p.asks(); err != nil {
		return err
	}
	if p.seal == "none" {
		p.config.Policy.AllowPlaintext = true
	}
	p.config.Data, p.config.Live, p.config.Format, p.config.StateDir = p.data, p.live, task.Format(p.format), p.state
	p.config.Marks = statefolder.MarksFolder()
	return nil
}

// asks reads the flags for the issuer of tokens.
func (p *publisher) asks() error {
	switch {
	case (p.issuer == "") != (p.issuerToken == ""):
		return cli.Usagef("--issuer and --issuer-token go together")
	case p.issuer == "":
		return nil
	case p.state == "":
		return cli.Usagef("--issuer: name the --state folder that keeps what was drawn: an issuer signs once for a person")
	}
	at, err := url.Parse(p.issuer)
	if err != nil || at.Host == "" || at.Scheme != "https" && !(at.Scheme == "http" && httpaccess.ThisMachine(at.Host)) {
		return cli.Usagef("--issuer %q: want an https address, or http of this machine", p.issuer)
	}
	token, err := cli.ReadToken("--issuer-token", p.issuerToken)
	if err != nil {
		return err
	}
	p.config.Grants = grants.Gateway{URL: p.issuer, Token: token}
	return nil
}

// oneLine cuts the picture of the file that the YAML decoder appends.
func oneLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// inspect prints how well the data fit the task, and sends nothing. It returns an error if they do not fit.
func (p *publisher) inspect(c *cobra.Command) error {
	report, err := rundevice.Check(c.Context(), p.config)
	if err != nil {
		return err
	}
	if err := p.json.Print(c.OutOrStdout(), report, func(w io.Writer) error {
		return cli.PrintInspection(w, report)
	}); err != nil {
		return err
	}
	return report.Unfit()
}
