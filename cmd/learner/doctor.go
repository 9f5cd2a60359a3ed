package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/admin"
	natsadmin "github.com/panlearn/panlearn/stream/natsjs/admin"
)

// diagnosis is what doctor prints.
type diagnosis struct {
	OK       bool                `json:"ok"` // no failure; there may be warnings
	Findings []natsadmin.Finding `json:"findings"`
}

func newDoctor() *cobra.Command {
	var (
		f         adminFlags
		role, dir string
	)
	c := &cobra.Command{
		Use:   "doctor [--nats URL] [--state DIR] [-f TASK | --task NAME]",
		Short: "look for what is wrong with a broker, its streams, these credentials and a learner's state",
		Long: `doctor looks at connection, TLS, server version, clocks, JetStream's limits, the task's streams and their copies, and what these
credentials may do. With --state it looks at the learner's folder: who holds it, its format, its ledger, the room on its disk,
and, with --nats, whether broker and folder are of one time. With -f it names the keys in which the task file is not the task
that stands. It changes nothing: a probe of a permission sends what no stream takes. Run it once with each role's credentials:
only an administrator's see settings. Every finding that is not ok says what to do. Exit code 1 if there is a failure; warnings are
listed.`,
		Example: `  learner doctor -f deploy/tasks/a9a.yaml --nats tls://broker:4222 --nkey admin.nk --tls-ca ca.pem --replicas 3
  learner doctor --task a9a --nats tls://broker:4222 --nkey stage.nk --tls-ca ca.pem --role stage
  learner doctor -f deploy/tasks/a9a.yaml --state /var/lib/panlearn/a9a --nats tls://broker:4222 --nkey learner.nk --tls-ca ca.pem`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(true)
			if err != nil {
				return err
			}
			if f.broker.URL == "" && dir == "" {
				return cli.Usagef("name the broker with --nats, the learner's folder with --state, or both")
			}
			config.Role, config.StateDir = natsadmin.Role(role), dir
			if config.Logger, err = f.log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			var d diagnosis
			if d.Findings, err = admin.Doctor(c.Context(), config); err != nil {
				return brokerErrors(err)
			}
			failures := 0
			for _, f := range d.Findings {
				if f.Status == natsadmin.Failure {
					failures++
				}
			}
			d.OK = failures == 0
			err = cli.Result(c.OutOrStdout(), f.json, d, func(w io.Writer) error {
				for _, f := range d.Findings {
					if _, err := fmt.Fprintf(w, "%-7s  %s: %s\n", f.Status, f.Check, f.Text); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil && failures > 0 {
				err = fmt.Errorf("failures: %d; see the findings", failures)
			}
			return err
		},
	}
	f.Flags(c.Flags())
	c.Flags().StringVar(&dir, "state", "", "state `DIR` of the learner, running or not")
	c.Flags().StringVar(&role, "role", "", "`ROLE` that the credentials are for: admin, learner, stage or publisher (default: find out)")
	return c
}
