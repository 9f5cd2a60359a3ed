// Command learner plans, runs and inspects private learning tasks. Run `learner --help`.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
)

func main() { os.Exit(cli.Main(newRoot(), os.Args[1:], os.Stderr)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "learner",
		Short: "learn a model from people's events without collecting them",
		Long: `learner plans, runs and inspects private learning tasks.

Start with:
  learner quickstart                       everything in one process, in under a minute
  learner plan -f deploy/tasks/a9a.yaml    what a task costs and what it can learn
  learner run -f TASK --embedded --listen 127.0.0.1:4222 --state DIR

Exit codes: 0 done, 1 error, 2 usage, 3 refused for privacy (budget, policy), 75 try again.
Every flag but --data can be set in the environment: --log-level is PANLEARN_LOG_LEVEL.`,
		Example: "  learner quickstart --events 50000 --json",
		Args:    cobra.NoArgs,
	}
	root.AddCommand(newQuickstart(), newRun(), newPlan(), newSimulate(), newSnapshot(), newStatus(), newLedger(), newFinish(), newBackup(), newRestore(), newEval(), newPredict(),
		newAudit(), newPrivacy(), cli.NewKeygen("learner"), newProvision(), newRemove(), newDoctor(), newDevCA(), cli.NewVersion())
	return root
}
