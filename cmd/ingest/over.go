package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// relayed holds the values of the --relay flags.
type relayed struct{ url, tokenFile, ca string }

func (r *relayed) flags(flags *pflag.FlagSet) {
	flags.StringVar(&r.url, "relay", "", "`URL` of an ingest relay, such as https://reports.example, instead of --nats")
	flags.StringVar(&r.tokenFile, "relay-token", "", "`FILE` with the token that the relay asks for")
	flags.StringVar(&r.ca, "relay-ca", "",
		"`FILE` of the certificate authority that signed the relay's certificate (default: the system's)")
}

// check refuses a publisher that names no way to a broker, unless it needs none, or two.
func (r *relayed) check(broker *cli.Broker, none bool) error {
	switch {
	case r.url != "" && broker.URL != "":
		return cli.Usagef("--nats and --relay exclude each other: name the broker, or the relay in front of it")
	case r.url == "" && (r.tokenFile != "" || r.ca != ""):
		return cli.Usagef("--relay-token and --relay-ca go with --relay")
	case r.url == "" && broker.URL == "" && !none:
		return cli.Usagef("--nats: name the broker, or an ingest relay with --relay")
	}
	return nil
}

// config returns how the relay is reached, zero where there is none.
func (r *relayed) config() (c relayclient.Config, err error) {
	if r.url == "" {
		return c, nil
	}
	c.URL = r.url
	if r.tokenFile != "" {
		if c.Token, err = readToken("--relay-token", r.tokenFile); err != nil {
			return c, err
		}
	}
	if r.ca != "" {
		text, err := os.ReadFile(r.ca)
		if err != nil {
			return c, cli.Usage(fmt.Errorf("--relay-ca: %w", err))
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return c, cli.Usagef("--relay-ca %s: no certificate in it", r.ca)
		}
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	}
	if err := c.Validate(); err != nil {
		return c, cli.Usagef("--relay: %w", err)
	}
	return c, nil
}
