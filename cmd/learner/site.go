package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func newSite() *cobra.Command {
	c := &cobra.Command{
		Use:   "site",
		Short: "manage a broker whose users are added and revoked without a change on its servers",
		Long: `site manages the folder of a broker in operator mode. Its servers know one public key, the
operator's, and admit the users that its accounts signed: one command adds a publisher,
another one revokes it within a minute. Accounts and permissions are those of
deploy/nats/panlearn.conf.

Give DIR/server (or DIR/server-1 and so on) to the servers, and DIR/users/NAME.creds and
ca.pem to the process of each user. Keep DIR/keys where it is: everybody who has it can
admit users.`,
	}
	c.AddCommand(newSiteInit(), newSiteAdd(), newSiteLeaf(), newSiteChange("revoke DIR NAME",
		"have no key of a publisher count any more",
		"  learner site revoke ./site shop-7 --nats tls://broker.example:4222", (*devca.Site).Revoke),
		newSiteChange("rotate DIR NAME", "give a user another key; the one before does not count any more",
			"  learner site rotate ./site learner --nats tls://broker.example:4222", (*devca.Site).Rotate), newSitePush())
	return c
}

func newSiteInit() *cobra.Command {
	config := devca.Config{}
	var days int
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "make the folder of a site: its servers' configuration, and a user for each role and the relay",
		Example: `  learner site init ./site --host broker.example
  learner site init ./site --server a.example --server b.example --server c.example`,
		Args: cli.OneArg("DIR", "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := lastFor(&config, days); err != nil {
				return err
			}
			config.Dir = args[0]
			site, err := devca.InitSite(config)
			if err != nil {
				return written(err)
			}
			start := "panlearn.conf"
			if len(config.Servers) > 0 {
				start = "cluster.conf"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s\nnext: copy %s to its machine, and there: nats-server -c %s\n",
				args[0], strings.Join(site.Servers, ", "), start)
			return err
		},
	}
	c.Flags().StringArrayVar(&config.Hosts, "host", nil, "`NAME` or address of the servers, beside localhost; repeatable")
	c.Flags().StringArrayVar(&config.Servers, "server", nil,
		"`HOST` or HOST:PORT at which a server of a cluster links to the others; repeatable (default: one server)")
	c.Flags().StringVar(&config.LeafListen, "leaf-listen", "",
		"`ADDR` on which the servers take leaf nodes, such as 0.0.0.0:7422 (default: they take none)")
	c.Flags().IntVar(&days, "days", 365, "lifetime of the certificates")
	return c
}

func newSiteLeaf() *cobra.Command {
	var hub string
	c := &cobra.Command{
		Use:   "leaf DIR NAME --hub URL",
		Short: "write leaves/NAME: a NATS server near the devices of a publisher, as a leaf node of the site's servers",
		Example: `  learner site init ./site --host broker.example --leaf-listen 0.0.0.0:7422
  learner site leaf ./site shop-7 --hub tls://broker.example:7422`,
		Args: twoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			dir, err := site.Leaf(args[1], hub)
			if err != nil {
				return cli.Usage(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s\nnext: nats-server -c %[1]s/leaf.conf, and ingest publish --nats nats://127.0.0.1:4222 --creds %[1]s/leaf.creds\n", dir)
			return err
		},
	}
	c.Flags().StringVar(&hub, "hub", "", "`URL` at which leaf nodes reach a server, such as tls://broker.example:7422")
	return c
}

func newSiteAdd() *cobra.Command {
	return &cobra.Command{
		Use:     "add-publisher DIR NAME",
		Short:   "admit a publisher: writes users/NAME.creds for its process; servers need no change",
		Example: "  learner site add-publisher ./site shop-7",
		Args:    twoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			if err := site.AddPublisher(args[1], time.Now()); err != nil {
				return cli.Usage(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote users/%s.creds and users/%[1]s.env\n", args[1])
			return err
		},
	}
}

// twoArgs refuses anything but DIR NAME.
func twoArgs(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return cli.Usagef("want DIR NAME: the folder of the site, and a user")
	}
	return nil
}

func openSite(dir string) (*devca.Site, error) {
	site, err := devca.OpenSite(dir)
	return site, cli.Usage(err)
}

// newSiteChange returns a command that changes a user and passes the change on to the servers.
func newSiteChange(use, short, example string, change func(s *devca.Site, name string,
	now time.Time) error) *cobra.Command {
	var servers siteServers
	c := &cobra.Command{
		Use:     use + " [--nats URL]",
		Short:   short,
		Long:    "With --nats the servers are told at once and end the user's connections. Without it, learner site push tells them.",
		Example: example,
		Args:    twoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			if err := change(site, args[1], time.Now()); err != nil {
				if errors.As(err, new(*fs.PathError)) {
					return err
				}
				return cli.Usage(err)
			}
			if servers.url == "" {
				_, err = fmt.Fprintln(c.OutOrStdout(), "signed; the servers do not know yet: learner site push")
				return err
			}
			token, err := site.Account(args[1])
			if err == nil {
				err = servers.tell(c.Context(), site, token)
			}
			if err != nil {
				return fmt.Errorf("signed, and the servers do not know yet (learner site push tells them): %w", err)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "signed, and the servers know")
			return err
		},
	}
	servers.flags(c)
	return c
}

func newSitePush() *cobra.Command {
	var servers siteServers
	c := &cobra.Command{
		Use:     "push DIR --nats URL",
		Short:   "send the servers of a site all changes",
		Example: "  learner site push ./site --nats tls://broker.example:4222",
		Args:    cli.OneArg("DIR", "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			if servers.url == "" {
				return cli.Usagef("--nats: name the broker")
			}
			tokens, err := site.Claims()
			if err == nil {
				err = servers.tell(c.Context(), site, tokens...)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "the servers know %s\n", cli.Count(uint64(len(tokens)), "account"))
			return err
		},
	}
	servers.flags(c)
	return c
}

// siteServers is the flag that names a site's servers.
type siteServers struct{ url string }

func (s *siteServers) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.url, "nats", "", "`URL` of the broker, such as tls://broker.example:4222")
}

// tell pushes signed accounts to the servers, as the user of the system account.
func (s *siteServers) tell(ctx context.Context, site *devca.Site, tokens ...string) error {
	creds, ca := site.PusherCreds()
	broker := run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: s.url, Creds: creds, TLSCA: ca}, Wait: 10 * time.Second}
	conn, err := broker.Connect(ctx, "panlearn site", slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return brokerErrors(err)
	}
	defer conn.Close()
	for _, token := range tokens {
		if err := conn.Admin().PushAccount(ctx, token); err != nil {
			return err
		}
	}
	return nil
}
