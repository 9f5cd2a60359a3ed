package main

import (
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run/runscorer"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/scorer"
)

// defaultEvery separates the readings of a model.
const defaultEvery = 10 * time.Second

func newServe() *cobra.Command {
	var (
		config                      runscorer.Config
		log                         cli.Log
		address, tokenFile, metrics string
		noToken                     bool
		states, learners            []string
	)
	c := &cobra.Command{
		Use:   "serve (--model FILE | --state DIR | --from URL)... --http ADDR (--http-token FILE | --http-no-token)",
		Short: "score events over HTTP with the newest models",
		Long: `serve is a scorer for applications: they post events as JSON or csv and get predictions by
the newest released model of a task. It serves any number of tasks, one model each, from
snapshot files, from state folders (whose learner may run), and from learners at their
--http. Every --every it looks for a new release and serves it at once. If the new one
cannot be read, the one before is served on. A learner that is not up, or has no task yet,
is asked again and again; until it has a model /readyz fails, and the log says why.

  curl -H "Authorization: Bearer $(cat token)" -H 'Content-Type: application/json' \
    -d '{"age": 39}' URL/v1/models/TASK/predictions

URL/v1/models lists what is served, URL/v1/models/TASK is the snapshot with an ETag, and
URL/v1/openapi.json describes the interface. serve does not log, measure or keep anything
of an event. Predictions depend on single events and have no privacy guarantee: everybody
who may post events may see them.

It listens on 127.0.0.1 unless you name another address, which needs --http-cert,
--http-key and --http-token.`,
		Example: "  learner serve --model model.json --http 8097 --http-no-token\n" +
			"  learner serve --state /var/lib/panlearn/a9a --state /var/lib/panlearn/prices --http 8097 --http-token ./token",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, dir := range states {
				config.Learners = append(config.Learners, statedir.Where{StateDir: dir})
			}
			for _, url := range learners {
				config.Learners = append(config.Learners, statedir.Where{URL: url})
			}
			switch {
			case len(config.Files)+len(config.Learners) == 0:
				return cli.Usagef("--model, --state or --from: name a model to serve")
			case address == "":
				return cli.Usagef("--http: name an address to listen at")
			case noToken == (tokenFile != ""):
				return cli.Usagef("want exactly one of --http-token FILE and --http-no-token")
			}
			if tokenFile != "" {
				token, err := cli.ReadToken("--http-token", tokenFile)
				if err != nil {
					return err
				}
				if config.Scorer.Access, err = httpaccess.Token(token); err != nil {
					return cli.Usagef("--http-token %s: %w", tokenFile, err)
				}
			}
			logger, err := log.Logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			cli.WarnOfShared(logger, "--http-token", tokenFile)
			config.Scorer.Logger = logger
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
			return cli.Classify(runscorer.Run(c.Context(), config), cli.Is(cli.ExitUsage, fs.ErrNotExist))
		},
	}
	flags := c.Flags()
	log.Flags(flags, "info")
	flags.StringArrayVar(&config.Files, "model", nil, "serve the snapshot in this `FILE`, json or npy; repeatable")
	flags.StringArrayVar(&states, "state", nil, "serve the model of the learner with this state `DIR`, running or not; repeatable")
	flags.StringArrayVar(&learners, "from", nil, "serve the model of the learner whose --http is at this `URL`; repeatable")
	flags.DurationVar(&config.Scorer.Every, "every", defaultEvery, "how often models are read again; at least "+scorer.MinEvery.String())
	flags.StringVar(&address, "http", "", "take requests at this `ADDR`: a port of 127.0.0.1, or host:port")
	flags.StringVar(&tokenFile, "http-token", "", "`FILE` with the token that requests to --http carry")
	flags.BoolVar(&noToken, "http-no-token", false, "let every process of this machine use it, without a token; on loopback only")
	flags.StringVar(&config.Cert, "http-cert", "", "`FILE` of the certificate of --http; read again when it is renewed")
	flags.StringVar(&config.Key, "http-key", "", "`FILE` of that certificate's key")
	flags.StringVar(&metrics, "metrics", "",
		"`ADDR` for /metrics, /healthz and /readyz, such as 127.0.0.1:9094; a port alone listens on this machine only")
	return c
}
