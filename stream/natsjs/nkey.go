package natsjs

import (
	"bytes"
	"fmt"

	"github.com/nats-io/nkeys"
)

// NewUser makes an NKey of a broker's user from the system's randomness: the seed that the user's process keeps, and the
// public key that the broker's configuration names.
func NewUser() (seed []byte, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	defer pair.Wipe()
	if seed, err = pair.Seed(); err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	seed = bytes.Clone(seed) // Wipe takes the original
	if public, err = pair.PublicKey(); err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	return seed, public, nil
}

// InboxOf is the prefix of the reply subjects of the user with this public key.
func InboxOf(public string) string { return plainInbox + "_" + public }
