package state

import (
	"encoding/hex"
	"fmt"
)

// Hash is a SHA-256 value: of a task, of a signed batch, of a ledger entry. The zero Hash means none.
type Hash [32]byte

// IsZero reports whether h is the zero Hash, which stands for "none".
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns what String returns.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 lower-case hexadecimal digits, and nothing else.
func (h *Hash) UnmarshalText(text []byte) error {
	var got Hash
	if len(text) != 2*len(got) {
		return fmt.Errorf("hash has %d characters, want %d hexadecimal digits", len(text), 2*len(got))
	}
	if _, err := hex.Decode(got[:], text); err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	if got.String() != string(text) {
		return fmt.Errorf("hash has upper-case digits, want lower case")
	}
	*h = got
	return nil
}
