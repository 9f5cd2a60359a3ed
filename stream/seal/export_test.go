package seal

import (
	"crypto/ed25519"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// ForgeForTest signs what Sign refuses.
func ForgeForTest(id *Identity, m proto.Message) []byte {
	body, err := stream.Marshal(m)
	if err != nil {
		panic(err)
	}
	signed, err := stream.Marshal(&wire.Signed{Version: stream.Version, Kind: stream.KindOf(m), Body: body,
		Key:       id.Public(),
		Signature: ed25519.Sign(id.private, signedBytes(stream.KindOf(m), body))})
	if err != nil {
		panic(err)
	}
	return signed
}

// PrivateForTest returns the private key.
func PrivateForTest(id *Identity) ed25519.PrivateKey { return id.private }

// FixedIdentityForTest returns the identity of a seed.
func FixedIdentityForTest(seed []byte) *Identity {
	return &Identity{private: ed25519.NewKeyFromSeed(seed)}
}

// RoundKeyForTest returns the key pair of a private key's bytes.
func RoundKeyForTest(suite wire.Suite, private []byte) (*RoundKey, error) {
	kem, err := kem(suite)
	if err != nil || kem == nil {
		return &RoundKey{suite: suite}, err
	}
	key, err := kem.NewPrivateKey(private)
	if err != nil {
		return nil, err
	}
	return &RoundKey{suite: suite, private: key, public: key.PublicKey().Bytes()}, nil
}

// RoundKeyBytesForTest returns the private key's bytes.
func RoundKeyBytesForTest(k *RoundKey) ([]byte, error) {
	if k.private == nil {
		return nil, nil
	}
	return k.private.Bytes()
}

// ParseIdentityForTest decodes an identity file.
func ParseIdentityForTest(data []byte) (*Identity, error) { return parseIdentity(data) }

// AssociatedForTest returns the HPKE associated data of a report.
func AssociatedForTest(ids [][]byte) []byte { return associated(ids) }
