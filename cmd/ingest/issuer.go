package main

import (
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runissuer"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant/issuer"
)

func newIssuer() *cobra.Command {
	var (
		config                                                          runissuer.Config
		log                                                             cli.Log
		login                                                           issuer.JWTConfig
		file, tasks, address, tokenFile, gatewayFile, metrics, personIn string
	)
	c := &cobra.Command{
		Use:   "issuer (-f TASK | --tasks DIR) --issuer-key FILE --state DIR --http ADDR (--person-header NAME | --jwt-key FILE ...)",
		Short: "sign one token for each person of a task, without seeing it",
		Long: `issuer runs behind the application's login and signs the tokens of a task with grants:
pass, one for each person. It never sees a token, so it cannot tell whose report is whose.
Before it answers, it syncs to --state the person it signs for. The same request of a
person gets the same signature again; another request of that person is refused.

The person is named by a proxy that ends the login, in the header --person-header, which
the proxy must remove from what others send; or by a JWT of the login. Gateways ask for
their users with the token of --gateway-token.

With --tasks one process signs for every task with grants among the files in a folder.
--issuer-key and --state are then folders with one key and one list for each task, by its
name. Files may be added and removed while it runs. A task that fails does not disturb the
others.

A list that is missing, or older than the mark beside the key, is refused (exit code 3): a
person could report twice. A key serves one task.`,
		Example: `  ingest keygen issuer --task churn /etc/panlearn/churn.issuer
  ingest issuer -f churn.yaml --issuer-key /etc/panlearn/churn.issuer --state /var/lib/panlearn/issuer --http 8096 --person-header X-Remote-User`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case (file == "") == (tasks == ""):
				return cli.Usagef("-f: name the task file, or the folder of many with --tasks")
			case config.KeyFile == "" || config.State == "":
				return cli.Usagef("--issuer-key and --state: name the key and the folder of the list")
			case address == "":
				return cli.Usagef("--http: name an address to listen at")
			case (personIn == "") == (login.KeyFile == ""):
				return cli.Usagef("want exactly one of --person-header and --jwt-key")
			case personIn == "" && tokenFile != "":
				return cli.Usagef("--http-token goes with --person-header: a JWT says itself who made it")
			}
			var err error
			var list many.List
			if tasks != "" {
				list, err = many.NewFolder(tasks)
			} else {
				config.Spec, err = task.Load(file, nil)
			}
			if err != nil {
				return cli.Usage(err)
			}
			access := func(flag, file string) (*httpaccess.Access, error) {
				token, err := cli.ReadToken(flag, file)
				if err != nil {
					return nil, err
				}
				a, err := httpaccess.Token(token)
				return &a, cli.Usage(err)
			}
			if personIn != "" {
				config.Issuer.Login, config.Issuer.Proxy = issuer.HeaderLogin(personIn), new(httpaccess.Access)
				if tokenFile != "" {
					if config.Issuer.Proxy, err = access("--http-token", tokenFile); err != nil {
						return err
					}
				}
			} else if config.Issuer.Login, err = issuer.JWTLogin(login); err != nil {
				return cli.Usagef("--jwt-key: %w", err)
			}
			if gatewayFile != "" {
				if config.Issuer.Gateways, err = access("--gateway-token", gatewayFile); err != nil {
					return err
				}
			}
			if config.Logger, err = log.Logger(c.ErrOrStderr()); err != nil {
				return err
			}
			if config.HTTP, err = cli.Listen("--http", address); err != nil {
				return err
			}
			defer config.HTTP.Close()
			if metrics != "" {
				if config.Metrics, err = cli.Listen("--metrics", metrics); err != nil {
					return err
				}
				defer config.Metrics.Close()
			}
			defer log.Steer(config.Logger)()
			if list != nil {
				err = runissuer.RunMany(c.Context(), config, list)
			} else {
				err = runissuer.Run(c.Context(), config)
			}
			return cli.Classify(err, cli.Is(cli.ExitRefused, issuer.ErrList), cli.Is(cli.ExitRefused, runissuer.ErrKey),
				cli.Is(cli.ExitUsage, fs.ErrNotExist), cli.Is(cli.ExitTransient, disk.ErrHeld))
		},
	}
	flags := c.Flags()
	log.Flags(flags, "info")
	flags.StringVarP(&file, "task-file", "f", "", "`FILE` of the task, with grants: pass and the key as issuer_key")
	flags.StringVar(&tasks, "tasks", "", "`DIR` with the task files of the tasks of this process")
	flags.StringVar(&config.KeyFile, "issuer-key", "", "`FILE` of ingest keygen issuer; its mark is beside it")
	flags.StringVar(&config.State, "state", "",
		"`DIR` of the list of people who have their token; keep it until the task ends")
	flags.StringVar(&address, "http", "", "take requests at this `ADDR`: a port of 127.0.0.1, or host:port")
	flags.StringVar(&config.Cert, "http-cert", "", "`FILE` of the certificate of --http; read again when it is renewed")
	flags.StringVar(&config.Key, "http-key", "", "`FILE` of that certificate's key")
	flags.StringVar(&personIn, "person-header", "", "`NAME` of the header in which a proxy says who is logged in")
	flags.StringVar(&tokenFile, "http-token", "",
		"`FILE` with the token that the proxy carries (default: every process of this machine may name people)")
	flags.StringVar(&login.KeyFile, "jwt-key", "", "`FILE` with the login's public key in PEM, for people with a JWT")
	flags.StringVar(&login.Issuer, "jwt-issuer", "", "`ISS` that a JWT must have")
	flags.StringVar(&login.Audience, "jwt-audience", "", "`AUD` that a JWT must have")
	flags.StringVar(&gatewayFile, "gateway-token", "",
		"`FILE` with the token of gateways, which name the people they ask for (default: no gateway may ask)")
	flags.StringArrayVar(&config.Issuer.Origins, "origin", nil,
		"`ORIGIN` of pages that may ask, such as https://app.example; repeatable (default: none)")
	flags.StringVar(&metrics, "metrics", "",
		"`ADDR` for /metrics, /healthz and /readyz, such as 127.0.0.1:9094; a port alone listens on this machine only")
	return c
}

func newKeygenIssuer() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "issuer --task NAME FILE",
		Short: "make the key of a task's issuer, and print its public key",
		Long: `issuer makes an RSA key of 2,048 bits for one task in FILE, and beside it FILE.mark, which
records how many people have their token. It prints the public key, which the task file
names as issuer_key. If the key exists, it prints its public key.

A key serves one task: with one key for two tasks, a person who may ask in both could
report twice in one of them.`,
		Example: "  ingest keygen issuer --task churn /etc/panlearn/churn.issuer",
		Args:    cli.OneArg("FILE", "the file of one key"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := stream.ParseTask(name)
			if err != nil {
				return cli.Usagef("--task: %w", err)
			}
			key, err := issuer.OpenKey(args[0], of)
			if err != nil {
				return cli.Usage(err)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), task.IssuerKeyText(key.Signer.Public()))
			return err
		},
	}
	c.Flags().StringVar(&name, "task", "", "`NAME` of the task that the key is for")
	return c
}
