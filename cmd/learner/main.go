// Command learner plans, runs and inspects private learning tasks. Run `learner --help`.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
)

func main() { os.Exit(cli.Main(newRoot(), os.Args[1:], os.Stderr)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "learner",
		Short: "learn a model from people's events without collecting them",
		Long: `learner plans, runs and inspects private learning tasks.

Start with:
  learner quickstart                       everything in one process, in under a minute
  learner init --data SAMPLE -o TASK       a task file from a public sample
  learner plan -f deploy/tasks/a9a.yaml    what a task costs and what it can learn
  learner run -f TASK --embedded --listen 127.0.0.1:4222 --state DIR

Exit codes: 0 done, 1 error, 2 usage, 3 refused for privacy (budget, policy), 75 try again.
Every flag except --data can be set in the environment: PANLEARN_LOG_LEVEL sets --log-level.
A variable whose name is almost that of a flag is refused.`,
		Example: "  learner quickstart --events 50000 --json",
		Args:    cobra.NoArgs,
	}
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Try", []*cobra.Command{newQuickstart(), newSimulate()}},
		{"Design a task", []*cobra.Command{newInit(), newCheck(), newPlan(), newTune(), newPrivacy(), newAudit()}},
		{"Learn", []*cobra.Command{newRun(), newFit(), newStatus(), newFinish()}},
		{"Use the model", []*cobra.Command{newSnapshot(), newHistory(), newRollback(), newPin(), newUnpin(), newEval(),
			newPredict(), newExplain(), newCalibrateModel(), newServe()}},
		{"Prepare and check the broker", []*cobra.Command{
			cli.NewKeygen("learner"), newDevCA(), newSite(), newProvision(), newDoctor(), newRetain(), newRemove()}},
		{"Look after the state folder", []*cobra.Command{newLedger(), newBackup(), newRestore()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(cli.NewVersion(), cli.NewMan())
	return root
}

// taskFlags name a task file and what is overridden in it.
type taskFlags struct {
	path string
	sets []string
}

func (f *taskFlags) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&f.path, "task-file", "f", "", "the task `FILE`")
	flags.StringArrayVar(&f.sets, "set", nil,
		"override a `PATH=VALUE` of the task file, such as privacy.epsilon=2; repeatable")
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

// lastFor has the certificates of a broker last for so many days from now.
func lastFor(config *devca.Config, days int) error {
	if days < 1 || days > int(devca.Longest/(24*time.Hour)) {
		return cli.Usagef("--days %d: want 1 to %d", days, devca.Longest/(24*time.Hour))
	}
	config.Lifetime, config.Now = time.Duration(days)*24*time.Hour, time.Now()
	return nil
}

// written returns the error of writing a broker's folder: what is not the disk's is the caller's.
func written(err error) error {
	var path *fs.PathError
	if errors.Is(err, fs.ErrExist) || !errors.As(err, &path) {
		return cli.Usage(err)
	}
	return err
}

func newDevCA() *cobra.Command {
	config := devca.Config{}
	var days int
	c := &cobra.Command{
		Use:   "devca DIR",
		Short: "write a broker's TLS certificates, users and configuration for development",
		Long: `devca writes a certificate authority, a server certificate for this machine, and for each
role (admin, learner, stage, helper, publishers) a client certificate, an NKey and a file
with the flags as environment variables. The folder also gets panlearn.conf, the shipped
configuration with the accounts and permissions of each role: nats-server -c
DIR/panlearn.conf starts a server. With one --server for each of several servers, each
server's files are in DIR/server-1, DIR/server-2 and so on, with a cluster.conf that joins
them.

The authority's private key is not kept. Only the owner can read the files. No file is
overwritten.`,
		Example: `  learner devca ./broker --host broker.example --publishers 3
  nats-server -c ./broker/panlearn.conf
  set -a; . ./broker/admin.env; learner provision -f deploy/tasks/a9a.yaml --nats tls://127.0.0.1:4222
  learner devca ./three --server a.example --server b.example --server c.example`,
		Args: cli.OneArg("DIR", "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := lastFor(&config, days); err != nil {
				return err
			}
			config.Dir = args[0]
			if err := devca.Write(config); err != nil {
				return written(err)
			}
			start := "panlearn.conf"
			if len(config.Servers) > 0 {
				start = "server-N/cluster.conf, each server on its machine with its folder"
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s: start the broker with nats-server -c %[1]s/%s\n", args[0], start)
			return err
		},
	}
	c.Flags().StringArrayVar(&config.Hosts, "host", nil, "another `NAME` or address of the server, besides localhost; repeatable")
	c.Flags().StringArrayVar(&config.Servers, "server", nil,
		"`HOST` or HOST:PORT at which other servers reach one of a cluster (default port "+devca.DefaultRoutePort+
			"); repeat for each")
	c.Flags().IntVar(&config.Publishers, "publishers", 1, "make `N` users who publish reports, each with an inbox of its own")
	c.Flags().IntVar(&days, "days", 90, "for how many days the certificates are valid")
	return c
}
