package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/run"
)

// environmentPrefix is in front of the variable of every flag.
const environmentPrefix = "PANLEARN_"

// variable returns the environment's name of a flag.
func variable(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets every flag that the command line left alone and the environment has. An empty variable counts as
// not set. --data is none of them: PANLEARN_DATA is the folder of the data sets that tests and measurements look for.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		if value, ok := lookup(name); ok && value != "" && !f.Changed && f.Name != "help" && f.Name != "data" {
			if err := flags.Set(f.Name, value); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", name, value, err))
			}
		}
	})
	return Usage(errors.Join(errs...))
}

// Broker holds the flags of every command that connects to a broker.
type Broker struct {
	run.Broker
	Replicas int // of the streams that this command creates
}

// Flags adds the broker's flags.
func (b *Broker) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&b.URL, "nats", "", "NATS `URL`, such as nats://127.0.0.1:4222; several with commas")
	flags.StringVar(&b.Creds, "creds", "", "`FILE` of NATS user credentials")
	flags.StringVar(&b.NKey, "nkey", "", "`FILE` of an NKey seed")
	flags.StringVar(&b.TLSCA, "tls-ca", "", "`FILE` of the certificate authority that signed the broker's certificate")
	flags.StringVar(&b.TLSCert, "tls-cert", "", "`FILE` of our certificate")
	flags.StringVar(&b.TLSKey, "tls-key", "", "`FILE` of our certificate's key")
	flags.StringVar(&b.InboxPrefix, "inbox-prefix", "",
		"`PREFIX` of the subjects of replies, as the broker permits it (default: _INBOX_ and the user's public key, or _INBOX without --nkey and --creds)")
	flags.DurationVar(&b.Wait, "nats-wait", 15*time.Second, "how long to wait for a broker that does not answer")
	flags.IntVar(&b.Replicas, "replicas", 1, "copies of the streams that this command creates: 1, 3 or 5")
}

// Validate refuses what no broker would take.
func (b *Broker) Validate() error {
	switch {
	case b.Replicas != 1 && b.Replicas != 3 && b.Replicas != 5:
		return Usagef("--replicas %d: want 1, 3 or 5", b.Replicas)
	case (b.TLSCert == "") != (b.TLSKey == ""):
		return Usagef("--tls-cert and --tls-key go together")
	case b.Creds != "" && b.NKey != "":
		return Usagef("--creds and --nkey exclude each other")
	}
	return nil
}
