package main

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run/runrelay"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relay"
)

func newRelay() *cobra.Command {
	var (
		config                             runrelay.Config
		broker                             cli.Broker
		log                                cli.Log
		profiles                           cli.Profiles
		address, tokenFile, metrics, tasks = "", "", "", []string(nil)
		noToken                            bool
	)
	c := &cobra.Command{
		Use:   "relay --nats URL --http ADDR (--http-token FILE | --http-no-token)",
		Short: "let devices read a task's records and send sealed reports over HTTP",
		Long: `relay is a small process beside the broker for devices that have no credentials of it, in
browsers or on phones. It serves the signed records of tasks, forwards sealed reports and
requests for places, and returns the broker's answer to each. It does not open, parse or
keep them, and it logs no address. One relay serves every task of its broker, or those of
--task. Any number of relays may run beside each other.

A report that the broker acknowledged gets a 200 with its message id. Any other response
is no acknowledgement: a proxy in front must not repeat a POST, nor cache responses marked
no-store. Requests with a cookie are refused: serve the relay on an origin of its own.

It listens on 127.0.0.1 unless you name another address, which needs --http-cert,
--http-key and --http-token. Pages in browsers may use it only from the origins of
--origin.`,
		Example: `  ingest relay --nats nats://127.0.0.1:4222 --http 8095 --http-no-token
  ingest relay --nats nats://broker:4222 --http 0.0.0.0:443 --http-cert relay.pem --http-key relay-key.pem --http-token ./token --origin https://app.example`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case broker.URL == "":
				return cli.Usagef("--nats: name the broker")
			case address == "":
				return cli.Usagef("--http: name an address to listen at")
			case noToken == (tokenFile != ""):
				return cli.Usagef("want exactly one of --http-token FILE and --http-no-token")
			}
			if err := broker.Validate(); err != nil {
				return err
			}
			for _, name := range tasks {
				task, err := stream.ParseTask(name)
				if err != nil {
					return cli.Usagef("--task: %w", err)
				}
				config.Relay.Tasks = append(config.Relay.Tasks, task)
			}
			if tokenFile != "" {
				token, err := cli.ReadToken("--http-token", tokenFile)
				if err != nil {
					return err
				}
				if config.Relay.Access, err = httpaccess.Token(token); err != nil {
					return cli.Usagef("--http-token %s: %w", tokenFile, err)
				}
			}
			logger, err := log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			cli.WarnOfShared(logger, "--http-token", tokenFile)
			config.Relay.Logger, config.Broker = logger, broker.Broker
			if config.HTTP, err = cli.Listen("--http", address); err != nil {
				return err
			}
			defer config.HTTP.Close()
			if err := config.Validate(); err != nil {
				return cli.Usage(err)
			}
			if metrics != "" {
				if config.Metrics, err = cli.Listen("--metrics", metrics); err != nil {
					return err
				}
				defer config.Metrics.Close()
			}
			defer log.Steer(logger)()
			stop, err := profiles.Serve(c.Context(), logger)
			if err != nil {
				return err
			}
			defer stop()
			return cli.Classify(runrelay.Run(c.Context(), config), cli.As[*natsjs.ConfigError](cli.ExitUsage),
				cli.As[*relay.ConfigError](cli.ExitUsage), cli.Is(cli.ExitUsage, fs.ErrNotExist),
				cli.Is(cli.ExitTransient, natsjs.ErrUnreachable))
		},
	}
	flags := c.Flags()
	broker.Flags(flags)
	log.Flags(flags, "info")
	profiles.Flags(flags)
	flags.StringVar(&address, "http", "", "take requests at this `ADDR`: a port of 127.0.0.1, or host:port")
	flags.StringVar(&tokenFile, "http-token", "", "`FILE` with the token that requests to --http carry")
	flags.BoolVar(&noToken, "http-no-token", false, "let every process of this machine use it, without a token; on loopback only")
	flags.StringVar(&config.Cert, "http-cert", "", "`FILE` of the certificate of --http; read again when it is renewed")
	flags.StringVar(&config.Key, "http-key", "", "`FILE` of that certificate's key")
	flags.StringArrayVar(&config.Relay.Origins, "origin", nil,
		"`ORIGIN` of pages that may use it, such as https://app.example; repeatable (default: none)")
	flags.StringArrayVar(&tasks, "task", nil, "`NAME` of a task to serve; repeatable (default: every task of the broker)")
	flags.StringVar(&config.Relay.AddressHeader, "client-address-header", "",
		"`HEADER` in which a proxy that you trust names its client, such as X-Forwarded-For; its last address counts (default: the connection's)")
	flags.IntVar(&config.Relay.PerAddress, "per-address", relay.DefaultPerAddress,
		"most waiting requests, posts, and reads by name of one address, each at one time")
	flags.IntVar(&config.Relay.Waiting, "waiting", relay.DefaultWaiting, "most waiting requests of all addresses")
	flags.StringVar(&metrics, "metrics", "",
		"`ADDR` for /metrics, /healthz and /readyz, such as 127.0.0.1:9093; a port alone listens on this machine only")
	return c
}
