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
		Long: `ingest is the side of the users and of the shuffle stage.

  ingest publish    devices, a gateway, or a silo: each row is an event of a user, or a record of the silo
  ingest shuffle    the shuffle stage: opens reports, mixes a cohort, releases one batch a round; or its helper
  ingest relay      sealed reports over HTTP, for devices that hold no credentials of a broker
  ingest issuer     one token for each person of a task, which it signs unseen
  ingest ledger     what the tasks of a state folder cost those whose events it reports
  ingest generate   synthetic events with a known optimum

Exit codes: 0 done, 1 error, 2 usage, 3 refused for privacy (policy), 75 try again.
Every flag but --data can be set in the environment: --log-level is PANLEARN_LOG_LEVEL. A variable that nearly is one is refused.`,
		Example: "  ingest publish -f deploy/tasks/a9a.yaml --nats nats://127.0.0.1:4222 --data a9a.gz --state ./devices",
		Args:    cobra.NoArgs,
	}
	root.AddCommand(newPublish(), newShuffle(), newRelay(), newIssuer(), newLedger(), newGenerate(), newKeygen(), cli.NewVersion(),
		cli.NewMan())
	return root
}
