package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runadmin"
)

// configs returns a configuration for each task that the flags name: one task, or the task files in the folder of
// --tasks, in the order of their names. Invalid files of the folder are reported in faults and do not affect the
// others.
func (f *adminFlags) configs(c *cobra.Command, tasks string) (all []runadmin.Config, faults error, err error) {
	if tasks == "" {
		one, err := f.config(false)
		return []runadmin.Config{one}, nil, err
	}
	if err := cli.OfOneTask(c, "task", "task-file", "set"); err != nil {
		return nil, nil, err
	}
	common, err := f.config(true)
	if err != nil {
		return nil, nil, err
	}
	if common.Broker.URL == "" {
		return nil, nil, cli.Usagef("--nats: name the broker")
	}
	list, err := many.NewFolder(tasks)
	if err != nil {
		return nil, nil, cli.Usagef("--tasks: %w", err)
	}
	entries, wrong, err := list.Tasks()
	if err != nil {
		return nil, nil, cli.Usagef("--tasks: %w", err)
	}
	for _, w := range wrong {
		faults = errors.Join(faults, fmt.Errorf("%s: %w", w.File, w.Err))
	}
	for _, e := range entries {
		one := common
		one.Task, one.Spec = e.Name, e.Spec
		all = append(all, one)
	}
	return all, cli.Usage(faults), nil
}

// each calls do with every configuration, and goes on after one that fails. Each error of several tasks names its task.
func each(all []runadmin.Config, faults error, do func(runadmin.Config) error) error {
	if len(all) == 1 && faults == nil {
		return do(all[0])
	}
	for _, one := range all {
		if err := do(one); err != nil {
			faults = errors.Join(faults, fmt.Errorf("task %s: %w", one.Task, err))
		}
	}
	return faults
}
