package cli

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// NewKeygen is the command keygen of both programs; role is for its example.
func NewKeygen(role string) *cobra.Command {
	program := "learner"
	if role == "stage" {
		program = "ingest"
	}
	return &cobra.Command{
		Use:     "keygen FILE",
		Short:   "make a signing key, or print the public key of one that is there",
		Example: fmt.Sprintf("  %s keygen /etc/panlearn/%s.key", program, role),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("FILE: %d arguments, want the file of one key", len(args))
			}
			return nil
		},
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

// NewVersion is the command version of both programs.
func NewVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the versions of program, wire format and toolchain",
		Example: "  version",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), Version())
			return err
		},
	}
}

// Version says which program this is: its version, that of the wire format, toolchain and platform.
func Version() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("panlearn %s, wire version %d, %s %s/%s", version, stream.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// PublicKey reads an Ed25519 public key in hexadecimal; empty is none.
func PublicKey(flag, text string) (ed25519.PublicKey, error) {
	if text == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, Usagef("%s: want %d hexadecimal digits", flag, 2*ed25519.PublicKeySize)
	}
	return key, nil
}
