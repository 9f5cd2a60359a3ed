package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/mlkem"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// tagSize is the ChaCha20-Poly1305 tag that a ciphertext ends with.
const tagSize = 16

const x25519Size = 32

// suites are the words of the suites in task files.
var suites = map[string]wire.Suite{"none": wire.Suite_SUITE_NONE, "x25519": wire.Suite_SUITE_X25519,
	"mlkem768x25519": wire.Suite_SUITE_MLKEM768_X25519}

// ParseSuite returns the suite of a word: none, x25519 or mlkem768x25519.
func ParseSuite(word string) (wire.Suite, error) {
	if suite, ok := suites[word]; ok {
		return suite, nil
	}
	return 0, fmt.Errorf("suite %q: want none, x25519 or mlkem768x25519", word)
}

// kem returns the key encapsulation of a suite, nil for SUITE_NONE.
func kem(suite wire.Suite) (hpke.KEM, error) {
	switch suite {
	case wire.Suite_SUITE_NONE:
		return nil, nil
	case wire.Suite_SUITE_X25519:
		return hpke.DHKEM(ecdh.X25519()), nil
	case wire.Suite_SUITE_MLKEM768_X25519:
		return hpke.MLKEM768X25519(), nil
	}
	return nil, fmt.Errorf("suite %d: unknown", suite)
}

// CheckPublic returns an error unless a peer's public key is one of the suite. Low-order X25519 points pass here and
// fail in Seal.
func CheckPublic(suite wire.Suite, public []byte) error {
	_, err := publicKey(suite, public)
	return err
}

func publicKey(suite wire.Suite, public []byte) (hpke.PublicKey, error) {
	k, err := kem(suite)
	if err != nil {
		return nil, err
	}
	want := 0
	switch suite {
	case wire.Suite_SUITE_X25519:
		want = x25519Size
	case wire.Suite_SUITE_MLKEM768_X25519:
		want = mlkem.EncapsulationKeySize768 + x25519Size
	}
	if len(public) != want {
		return nil, fmt.Errorf("public key has %d bytes: %v wants %d", len(public), suite, want)
	}
	if k == nil {
		return nil, nil
	}
	key, err := k.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("public key of %v: %w", suite, err)
	}
	return key, nil
}

// SealedSize returns the length in bytes of the encapsulated key and of the ciphertext for a plaintext of that length;
// both are 0 and the plaintext's length for SUITE_NONE. An unknown suite counts as SUITE_NONE.
func SealedSize(suite wire.Suite, plaintextLen int) (encLen, ciphertextLen int) {
	switch suite {
	case wire.Suite_SUITE_X25519:
		return x25519Size, plaintextLen + tagSize
	case wire.Suite_SUITE_MLKEM768_X25519:
		return mlkem.CiphertextSize768 + x25519Size, plaintextLen + tagSize
	}
	return 0, plaintextLen
}

// field returns the encoded length of a field of n bytes, for field numbers below 16.
func field(n int) int {
	if n == 0 {
		return 0 // proto3 leaves empty fields out
	}
	return 1 + protowire.SizeBytes(n)
}

// SharedReportSize is ReportSize of a report for two operators: over plaintexts of these lengths, with a public share
// of that length for each id.
func SharedReportSize(suite wire.Suite, ids, leaderLen, helperLen, publicLen int) int {
	enc, ciphertext := SealedSize(suite, helperLen)
	return ReportSize(suite, ids, leaderLen) + ids*field(publicLen) + field(enc) + field(ciphertext)
}

// ReportSize returns the exact length in bytes of an encoded wire.Report with that many ids over a plaintext of that
// length: what must fit into one message of the broker.
func ReportSize(suite wire.Suite, ids, plaintextLen int) int {
	enc, ciphertext := SealedSize(suite, plaintextLen)
	return 1 + protowire.SizeVarint(stream.Version) + field(stream.HashSize) +
		ids*field(stream.ReportIDSize) + field(enc) + field(ciphertext)
}
