package consent

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/panlearn/panlearn/stream"
)

// A Fingerprint is a SHA-256 or an Ed25519 public key: 32 bytes, in hexadecimal where it is text. Empty is none.
type Fingerprint []byte

// String is hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f) }

// MarshalText is hexadecimal.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads 64 hexadecimal digits, or nothing.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || (len(b) != 0 && len(b) != stream.HashSize) {
		return fmt.Errorf("want %d hexadecimal digits", 2*stream.HashSize)
	}
	*f = b
	return nil
}

// accepts says whether a value is the pinned one, or none is pinned.
func (f Fingerprint) accepts(value []byte) bool { return len(f) == 0 || bytes.Equal(f, value) }
