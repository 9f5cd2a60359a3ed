package main

import (
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
)

// taskFlags name a task file and what is overridden in it.
type taskFlags struct {
	path string
	sets []string
}

func (f *taskFlags) Flags(flags *pflag.FlagSet) {
	flags.StringVarP(&f.path, "task-file", "f", "", "the task `FILE`")
	flags.StringArrayVar(&f.sets, "set", nil, "override a `PATH=VALUE` of the task file, such as privacy.epsilon=2; repeatable")
}

func (f *taskFlags) load() (*task.Spec, error) {
	if f.path == "" {
		return nil, cli.Usagef("-f: name a task file, such as deploy/tasks/a9a.yaml")
	}
	spec, err := task.Load(f.path, f.sets)
	return spec, cli.Usage(err)
}

func (f *taskFlags) job() (run.Job, error) {
	spec, err := f.load()
	if err != nil {
		return run.Job{}, err
	}
	job, err := run.NewJob(spec)
	return job, cli.Usage(err)
}
