package cli

import (
	"fmt"
	"log/slog"

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
		log.Info("made a new identity", "role", role, "file", path, "public_key", fmt.Sprintf("%x", []byte(identity.Public())))
	}
	return identity, nil
}
