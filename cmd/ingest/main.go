// Command ingest publishes user events as private reports, and mixes them. Run `ingest --help`.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
)

func main() { os.Exit(cli.Main(newRoot(), os.Args[1:], os.Stderr)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ingest",
		Short: "publish user events as private reports, and mix them",
		Long: `ingest runs the users' side and the shuffle stage.

  ingest publish    devices, a gateway, or a silo: each row is an event of a user,
                    or a record of the silo
  ingest shuffle    the shuffle stage, which opens reports, mixes a cohort and releases
                    one batch a round; or its helper
  ingest relay      sealed reports over HTTP, for devices without credentials of the broker
  ingest issuer     one token for each person of a task, signed without seeing it
  ingest ledger     what the tasks of a state folder cost the people whose events it reports
  ingest generate   synthetic events with a known optimum

Exit codes: 0 done, 1 error, 2 usage, 3 refused for privacy (policy), 75 try again.
Every flag except --data can be set in the environment: PANLEARN_LOG_LEVEL sets --log-level.
A variable whose name is almost that of a flag is refused.`,
		Example: "  ingest publish -f deploy/tasks/a9a.yaml --nats nats://127.0.0.1:4222 --data a9a.gz --state ./devices",
		Args:    cobra.NoArgs,
	}
	root.AddCommand(newPublish(), newShuffle(), newRelay(), newIssuer(), newLedger(), newGenerate(), newKeygen(), cli.NewVersion(),
		cli.NewMan())
	return root
}
