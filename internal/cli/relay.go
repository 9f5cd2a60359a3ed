package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// Relayed holds the flags of every command that reaches a broker through a relay.
type Relayed struct{ URL, tokenFile, ca string }

// Flags adds them; what is said of --relay itself.
func (r *Relayed) Flags(flags *pflag.FlagSet, what string) {
	flags.StringVar(&r.URL, "relay", "", "`URL` of an ingest relay, such as https://reports.example, "+what)
	flags.StringVar(&r.tokenFile, "relay-token", "", "`FILE` with the token that the relay asks for")
	flags.StringVar(&r.ca, "relay-ca", "",
		"`FILE` of the certificate authority that signed the relay's certificate (default: the system's)")
}

// Config returns how the relay is reached, zero where none is named.
func (r *Relayed) Config() (c relayclient.Config, err error) {
	switch {
	case r.URL == "" && (r.tokenFile != "" || r.ca != ""):
		return c, Usagef("--relay-token and --relay-ca go with --relay")
	case r.URL == "":
		return c, nil
	}
	c.URL = r.URL
	if r.tokenFile != "" {
		if c.Token, err = ReadToken("--relay-token", r.tokenFile); err != nil {
			return c, err
		}
	}
	if r.ca != "" {
		text, err := os.ReadFile(r.ca)
		if err != nil {
			return c, Usage(fmt.Errorf("--relay-ca: %w", err))
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return c, Usagef("--relay-ca %s: no certificate in it", r.ca)
		}
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	}
	if err := c.Validate(); err != nil {
		return c, Usagef("--relay: %w", err)
	}
	return c, nil
}

// Warn writes to the log that others can read the token of the relay, if they can.
func (r *Relayed) Warn(log *slog.Logger) { WarnOfShared(log, "--relay-token", r.tokenFile) }

// WarnOfShared writes to the log that others on this machine can read, or replace, the token in the file of a flag,
// if they can. An empty name is none.
func WarnOfShared(log *slog.Logger, flag, file string) {
	if file == "" {
		return
	}
	if info, err := os.Stat(file); err == nil && disk.Shared(info) {
		log.Warn(flag+": others on this machine can reach the token: chmod 600 "+file, "mode", info.Mode().Perm().String())
	}
}

// ReadToken reads the one line of a file that a flag names. Errors never quote it.
func ReadToken(flag, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", Usage(fmt.Errorf("%s: %w", flag, err))
	}
	token := string(bytes.TrimSpace(text))
	if len(token) < httpaccess.MinToken { // here, where the file is known
		return "",
			Usagef("%s %s: the token has %d bytes: want at least %d, such as those of `openssl rand -hex 32`",
				flag, file, len(token), httpaccess.MinToken)
	}
	return token, nil
}
