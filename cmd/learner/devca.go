package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/devca"
)

func newDevCA() *cobra.Command {
	config := devca.Config{}
	var days int
	c := &cobra.Command{
		Use:   "devca DIR",
		Short: "write a broker's TLS certificates, users and configuration for development",
		Long: `devca writes a certificate authority, a server certificate for this machine, and for each role (admin, learner, stage,
publishers) a client certificate, an NKey and a file with the flags as environment variables. panlearn.conf in the folder
is the shipped configuration, with accounts and permissions for each role: nats-server -c DIR/panlearn.conf starts it.

The authority's private key is not kept. Files are readable by their owner only; nothing is overwritten.`,
		Example: `  learner devca ./broker --host broker.example --publishers 3
  nats-server -c ./broker/panlearn.conf
  set -a; . ./broker/admin.env; learner provision -f deploy/tasks/a9a.yaml --nats tls://127.0.0.1:4222`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("DIR: %d arguments, want one folder", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if days < 1 || days > int(devca.Longest/(24*time.Hour)) {
				return cli.Usagef("--days %d: want 1 to %d", days, devca.Longest/(24*time.Hour))
			}
			config.Dir, config.Lifetime, config.Now = args[0], time.Duration(days)*24*time.Hour, time.Now()
			err := devca.Write(config)
			var path *fs.PathError
			if errors.Is(err, fs.ErrExist) || err != nil && !errors.As(err, &path) {
				return cli.Usage(err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: start the broker with nats-server -c %[1]s/panlearn.conf\n", args[0])
			return err
		},
	}
	c.Flags().StringArrayVar(&config.Hosts, "host", nil, "`NAME` or address of the server beside localhost; repeatable")
	c.Flags().IntVar(&config.Publishers, "publishers", 1, "`N` users who publish reports, each with an inbox of its own")
	c.Flags().IntVar(&days, "days", 90, "for how many days the certificates are valid")
	return c
}
