package main

import (
	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
)

// restFlags are those of commands that stand in for the learner of a state folder.
type restFlags struct {
	broker        cli.Broker
	log           cli.Log
	dir, identity string
	json          bool
}

func (f *restFlags) add(c *cobra.Command, logLevel, dir, identity string) {
	c.Flags().StringVar(&f.dir, "state", "", dir)
	c.Flags().StringVar(&f.identity, "identity", "", "`FILE` of the learner's signing key"+identity+" (default: in the user's configuration folder)")
	f.broker.Flags(c.Flags())
	f.log.Flags(c.Flags(), logLevel)
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

func (f *restFlags) config(c *cobra.Command) (admin.AtRest, error) {
	if err := f.broker.Validate(); err != nil {
		return admin.AtRest{}, err
	}
	logger, err := f.log.Logger(c.ErrOrStderr())
	return admin.AtRest{StateDir: f.dir, Broker: f.broker.Broker, Logger: logger,
		Identity: func() (*seal.Identity, error) { return existingIdentity(f.identity) }}, err
}

// restErrors are the exit codes of such commands.
func restErrors(err error) error {
	return cli.Classify(brokerErrors(err), cli.As[*state.VersionError](cli.ExitUsage), cli.Is(cli.ExitTransient, state.ErrLocked), cli.Is(cli.ExitTransient, natsjs.ErrNoStream))
}

// existingIdentity is the learner's identity, which a command that goes on with a task never makes.
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
