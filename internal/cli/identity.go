package cli

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/stream/seal"
)

// Identity loads the identity of a role from path, or from the user's configuration folder where path is empty; a file
// that is not there yet is created.
func Identity(path, role string, log *slog.Logger) (*seal.Identity, error) {
	if path == "" {
		var err error
		if path, err = IdentityPath(role); err != nil {
			return nil, err
		}
	}
	identity, created, err := seal.LoadOrCreateIdentity(path)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	if created {
		log.Info("made a new identity", "role", role, "file", path, "public_key",
			fmt.Sprintf("%x", []byte(identity.Public())))
	}
	return identity, nil
}

// IdentityPath returns the default path of the identity of a role: in the user's configuration folder. It
// returns a usage error if there is no such folder.
func IdentityPath(role string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", Usagef("--identity: no configuration folder for this user (%v): name a file", err)
	}
	return filepath.Join(dir, "panlearn", role+".key"), nil
}

// PublicKey returns the Ed25519 public key that a flag has in hexadecimal; nil if the flag is not given. An empty one,
// as a variable that is not set leaves it, is refused: the key would be trusted at first use, and not pinned.
func PublicKey(flags *pflag.FlagSet, name string) (ed25519.PublicKey, error) {
	f := flags.Lookup(name)
	if !f.Changed {
		return nil, nil
	}
	key, err := hex.DecodeString(f.Value.String())
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, Usagef("--%s: want %d hexadecimal digits", name, 2*ed25519.PublicKeySize)
	}
	return key, nil
}

// NewKeygen returns the command keygen of both programs; role is for its example.
func NewKeygen(role string) *cobra.Command {
	program := "learner"
	if role == "stage" {
		program = "ingest"
	}
	return &cobra.Command{
		Use:     "keygen FILE",
		Short:   "make a signing key, or print the public key of one that is there",
		Example: fmt.Sprintf("  %s keygen /etc/panlearn/%s.key", program, role),
		Args:    OneArg("FILE", "the file of one key"),
		RunE: func(c *cobra.Command, args []string) error {
			identity, _, err := seal.LoadOrCreateIdentity(args[0])
			if err != nil {
				return Usage(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%x\n", []byte(identity.Public()))
			return err
		},
	}
}
