package main

import (
	"io/fs"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// adminFlags are what the commands share that look after a broker.
type adminFlags struct {
	task   taskFlags
	name   string
	broker cli.Broker
	log    cli.Log
	json   bool
}

func (f *adminFlags) Flags(flags *pflag.FlagSet) {
	f.task.Flags(flags)
	flags.StringVar(&f.name, "task", "", "`NAME` of the task, instead of a task file")
	f.broker.Flags(flags)
	f.log.Flags(flags, "error") // denied probes are news to nobody
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

// config is what the flags say about task and broker. Without one of them it is an error unless optional.
func (f *adminFlags) config(optional bool) (c admin.Config, err error) {
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
