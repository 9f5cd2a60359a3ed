package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	natsadmin "github.com/panlearn/panlearn/stream/natsjs/admin"
)

type provisioned struct {
	Task    stream.Task             `json:"task"`
	Streams []natsadmin.StreamState `json:"streams"`
}

func newProvision() *cobra.Command {
	var (
		f       adminFlags
		reports string
	)
	c := &cobra.Command{
		Use:   "provision (-f TASK | --task NAME) --nats URL",
		Short: "create a task's streams, with an administrator's credentials",
		Long: `provision creates the task's five streams and the consumer of its reports where they are missing. What is there already is
left as it is; where a guarantee would not hold on it, provision says which settings differ and fails. It may be run again.

learner run creates missing streams itself if its credentials let it, as they do on a broker without accounts. With -f the
size of one report is known and enforced by the broker.`,
		Example: `  learner provision -f deploy/tasks/a9a.yaml --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --replicas 3`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(false)
			if err != nil {
				return err
			}
			trust := accounting.Shuffle.String()
			if config.Spec != nil {
				trust = config.Spec.Privacy.Trust
			}
			if config.MemoryReports, err = memoryReports(reports, trust); err != nil {
				return err
			}
			if config.Logger, err = f.log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			list, err := admin.Provision(c.Context(), config)
			if err != nil {
				return brokerErrors(err)
			}
			return cli.Result(c.OutOrStdout(), f.json, provisioned{config.Task, list}, func(w io.Writer) error {
				for _, s := range list {
					what := "was there"
					if s.Created {
						what = "created"
					}
					if _, err := fmt.Fprintf(w, "%-9s  %s, %s, %s\n", what, s.Name, natsadmin.Copies(s.Replicas), s.Storage); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.Flags(c.Flags())
	c.Flags().StringVar(&reports, "reports", "", "where sealed reports are kept: file, or memory (default: file, and memory under the trusts pan and shuffle+pan)")
	return c
}
