package seal

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// An Identity is the long-term Ed25519 key of a learner, a stage or a helper. It prints as its public half.
type Identity struct {
	private ed25519.PrivateKey
}

// NewIdentity draws an identity from the operating system's generator.
func NewIdentity() (*Identity, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make identity: %w", err)
	}
	return &Identity{private: private}, nil
}

// Public returns the key that readers pin, 32 bytes.
func (id *Identity) Public() ed25519.PublicKey {
	return id.private.Public().(ed25519.PublicKey)
}

func (id *Identity) String() string { return fmt.Sprintf("identity %x", []byte(id.Public())) }

// LogValue keeps slog from printing the private key.
func (id *Identity) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Format keeps every verb from printing the private key.
func (id *Identity) Format(f fmt.State, _ rune) { fmt.Fprint(f, id.String()) }

// Secret returns 32 bytes that follow from the private key and a label, by HKDF-SHA-256: shown to nobody, the same in
// every process with the key file, and another for each label.
func (id *Identity) Secret(label string) (secret [32]byte) {
	key, err := hkdf.Key(sha256.New, id.private.Seed(), nil, "panlearn/v1/secret\x00"+label, len(secret))
	if err != nil {
		panic(fmt.Sprintf("seal: a secret of %d bytes: %v", len(secret), err)) // the length is ours
	}
	copy(secret[:], key)
	clear(key)
	return secret
}

// Sign returns the canonical bytes of a wire.Signed that carries m. The signature is Ed25519 over
//
//	"panlearn/v1/" kind 0x00 body
//
// where kind is the name in lower case ("round") and body the canonical bytes of m. A message that no reader would
// accept is refused here.
func (id *Identity) Sign(m proto.Message) ([]byte, error) {
	kind := stream.KindOf(m)
	if kind == wire.Kind_KIND_UNSPECIFIED {
		return nil, fmt.Errorf("sign %s: not a message that is signed", m.ProtoReflect().Descriptor().Name())
	}
	body, err := stream.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if err := stream.Unmarshal(body, m.ProtoReflect().New().Interface()); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if err := sameKey(m, id.Public()); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return stream.Marshal(&wire.Signed{
		Version: stream.Version, Kind: kind, Body: body, Key: id.Public(),
		Signature: ed25519.Sign(id.private, signedBytes(kind, body)),
	})
}

// Reasons to refuse a signed message.
var (
	ErrWrongKind    = errors.New("signed as another kind of message")
	ErrWrongKey     = errors.New("signed with another key than the pinned one")
	ErrBadSignature = errors.New("the signature does not verify")
)

// Verify decodes a signed message of Sign into m and returns its body. The body's hash serves as task hash or manifest
// hash. The envelope must be canonical, its kind m's, the key the pinned one, the signature valid, and the body
// acceptable to stream.Unmarshal. After an error m is not to be used.
func Verify(signed []byte, pinned ed25519.PublicKey, m proto.Message) (body []byte, err error) {
	if len(pinned) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("verify: the pinned key has %d bytes: want %d", len(pinned), ed25519.PublicKeySize)
	}
	s, err := envelope(signed, m)
	if err != nil {
		return nil, err
	}
	if !pinned.Equal(ed25519.PublicKey(s.Key)) {
		return nil, fmt.Errorf("verify %s: %w: %x, pinned %x", name(s.Kind), ErrWrongKey, s.Key, []byte(pinned))
	}
	return s.Body, open(s, m)
}

// VerifyStage decodes a stage's self-signed identity into m and returns its key. It proves only that the writer of the
// message holds the key: the caller pins it, or compares it with the one that Task names.
func VerifyStage(signed []byte, m *wire.StageIdentity) (ed25519.PublicKey, error) {
	s, err := envelope(signed, m)
	if err != nil {
		return nil, err
	}
	if err := open(s, m); err != nil {
		return nil, err
	}
	return ed25519.PublicKey(s.Key), nil
}

func envelope(signed []byte, m proto.Message) (*wire.Signed, error) {
	var s wire.Signed
	if err := stream.Unmarshal(signed, &s); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if want := stream.KindOf(m); s.Kind != want || want == wire.Kind_KIND_UNSPECIFIED {
		return nil, fmt.Errorf("verify: %w: %s, want %s", ErrWrongKind, name(s.Kind), name(want))
	}
	return &s, nil
}

// open checks the signature before it looks at the body.
func open(s *wire.Signed, m proto.Message) error {
	if !ed25519.Verify(s.Key, signedBytes(s.Kind, s.Body), s.Signature) {
		return fmt.Errorf("verify %s: %w", name(s.Kind), ErrBadSignature)
	}
	err := stream.Unmarshal(s.Body, m)
	if err == nil {
		err = sameKey(m, s.Key)
	}
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// sameKey returns an error where a stage or helper introduces another key than the one that signs.
func sameKey(m proto.Message, signer ed25519.PublicKey) error {
	switch m := m.(type) {
	case *wire.StageIdentity:
		if !signer.Equal(ed25519.PublicKey(m.Key)) {
			return fmt.Errorf("stage identity names the key %x: %w", m.Key, ErrWrongKey)
		}
	case *wire.HelperIdentity:
		if !signer.Equal(ed25519.PublicKey(m.Key)) {
			return fmt.Errorf("helper identity names the key %x: %w", m.Key, ErrWrongKey)
		}
	}
	return nil
}

func signedBytes(kind wire.Kind, body []byte) []byte {
	return append([]byte("panlearn/v1/"+name(kind)+"\x00"), body...)
}

func name(k wire.Kind) string { return strings.ToLower(strings.TrimPrefix(k.String(), "KIND_")) }
