package seal

import (
	"bytes"
	"crypto/hpke"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Reasons not to open a report.
var (
	// ErrErased means that the round key is gone: its attempt is over.
	ErrErased = errors.New("the round key is erased")
	// ErrOpen means that a report was not sealed to this key, context and ids, or was changed on its way.
	ErrOpen = errors.New("the report does not open")
)

// A RoundKey is the key pair of one round attempt. It lives in memory only and its methods may be called
// concurrently. It prints as its suite.
type RoundKey struct {
	suite  wire.Suite
	public []byte

	mu      sync.RWMutex // Erase waits for reports that are being opened
	private hpke.PrivateKey
	erased  bool
}

// NewRoundKey draws a key pair from the operating system's generator. With SUITE_NONE there is no key and Public is
// empty.
func NewRoundKey(suite wire.Suite) (*RoundKey, error) {
	kem, err := kem(suite)
	if err != nil {
		return nil, fmt.Errorf("make round key: %w", err)
	}
	k := &RoundKey{suite: suite}
	if kem == nil {
		return k, nil
	}
	if k.private, err = kem.GenerateKey(); err != nil {
		return nil, fmt.Errorf("make round key: %w", err)
	}
	k.public = k.private.PublicKey().Bytes()
	return k, nil
}

// Public returns the key for Open and for Context.Public. It outlives Erase.
func (k *RoundKey) Public() []byte { return bytes.Clone(k.public) }

// Open returns the plaintext of a report that was sealed to this key under this context and these ids. The plaintext
// is the caller's to overwrite. With SUITE_NONE nothing is authenticated, and the plaintext is r.Ciphertext itself.
func (k *RoundKey) Open(c Context, r *wire.Report) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("open report: %w", err)
	}
	if !bytes.Equal(c.Public, k.public) {
		return nil, errors.New("open report: the context names another round key")
	}
	if err := stream.Check(r); err != nil {
		return nil, fmt.Errorf("open report: %w", err)
	}
	enc, overhead := SealedSize(k.suite, 0)
	if len(r.Encapsulated) != enc || len(r.Ciphertext) <= overhead {
		return nil, fmt.Errorf("open report: %w: %d bytes of key, %d of ciphertext: want %d and more than %d",
			ErrOpen, len(r.Encapsulated), len(r.Ciphertext), enc, overhead)
	}
	if k.suite == wire.Suite_SUITE_NONE {
		return k.unsealed(r)
	}
	plaintext, err := k.openFrom(c.Info(), associated(r.Ids), r.Encapsulated, r.Ciphertext)
	if err != nil {
		return nil, fmt.Errorf("open report: %w", err)
	}
	return plaintext, nil
}

// unsealed returns the plaintext of a report of SUITE_NONE, as long as the attempt goes on.
func (k *RoundKey) unsealed(r *wire.Report) ([]byte, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.erased {
		return nil, fmt.Errorf("open report: %w", ErrErased)
	}
	return r.Ciphertext, nil
}

// Erase drops the private key; when it returns, no report is being opened and none will be. It may be called again.
func (k *RoundKey) Erase() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.private, k.erased = nil, true
}

func (k *RoundKey) String() string { return fmt.Sprintf("round key of %v", k.suite) }

// LogValue keeps slog from printing the private key.
func (k *RoundKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Format keeps every verb from printing the private key.
func (k *RoundKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }
