// Package grant makes, signs and verifies the tokens by which a task counts one report a person without knowing who
// sent it.
//
// A token is a Privacy Pass token of type 2 (RFC 9578, section 6): an RSA signature (RFC 9474,
// RSABSSA-SHA384-PSS-Deterministic, by package blindrsa of circl) that the issuer makes without seeing what it signs. The
// redemption context is the task hash, and the key is one task's alone, so that a token is of use in that task only. Of
// the token's five fields a device sends two, the nonce and the signature: the others follow from the task.
//
// It promises that a token that verifies was signed under the task's key, and that nothing in it reveals to the issuer
// for whom. It does not bound how many tokens a person has: the issuer's list does that (package grant/issuer).
//
// The caller owes:
//
//  1. to store what [NewRequest] returns, durably, before [Request.Blind]'s message goes to the issuer: a device that
//     blinds a second time is refused;
//  2. to count a nonce once: two signatures of one nonce are one token.
package grant

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/panlearn/panlearn/stream"
)

// Lengths in bytes.
const (
	NonceSize     = 32
	SignatureSize = 256                       // of RSA-2048
	Size          = NonceSize + SignatureSize // what a report carries of a token
	keySize       = stream.IssuerKeySize      // of an issuer's public key
	HashSize      = 16                        // of what is kept of a nonce
)

// tokenType is the type of publicly verifiable tokens, RFC 9578, section 8.2.1.
const tokenType = 0x0002

// issuerName is in every challenge. It names no server: devices know their issuer by its key.
const issuerName = "grants.panlearn.invalid"

// variant is the blind signature scheme of RFC 9578, section 6.
const variant = blindrsa.SHA384PSSDeterministic

// pss are the parameters of that variant, RFC 9474, section 5.
var pss = rsa.PSSOptions{SaltLength: sha512.Size384, Hash: crypto.SHA384}

// The bytes around the modulus in the public key: SubjectPublicKeyInfo with RSASSA-PSS (RFC 9578, section 6.5: SHA-384,
// MGF1 with SHA-384, a salt of 48 bytes), and the exponent 65537. RSA-2048 has no other bytes there.
var (
	keyBegins, _ = hex.DecodeString("30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a" +
		"864886f70d010108300b0609608648016503040202a2030201300382010f003082010a0282010100")
	keyEnds, _ = hex.DecodeString("0203010001")
)

// errKey means that bytes are no issuer's public key.
var errKey = fmt.Errorf("want an RSA-2048 key as RSASSA-PSS of RFC 9578 with the exponent 65537, %d bytes of DER",
	keySize)

// ParseKey reads an issuer's public key, which has one encoding.
func ParseKey(spki []byte) (*rsa.PublicKey, error) {
	if len(spki) != keySize || !bytes.HasPrefix(spki, keyBegins) || !bytes.HasSuffix(spki, keyEnds) {
		return nil, errKey
	}
	n := new(big.Int).SetBytes(spki[len(keyBegins) : keySize-len(keyEnds)])
	if n.BitLen() != 8*SignatureSize || n.Bit(0) == 0 {
		return nil, errKey
	}
	return &rsa.PublicKey{N: n, E: 65537}, nil
}

// marshalKey is the inverse of ParseKey.
func marshalKey(key *rsa.PublicKey) ([]byte, error) {
	out := append(bytes.Clone(keyBegins), key.N.Bytes()...)
	out = append(out, keyEnds...)
	if again, err := ParseKey(out); err != nil || !again.Equal(key) {
		return nil, errKey
	}
	return out, nil
}

// KeyID returns the token key id of a public key: SHA-256 of its bytes.
func KeyID(spki []byte) [sha256.Size]byte { return sha256.Sum256(spki) }

// challenge returns the TokenChallenge of a task (RFC 9577, section 2.1): type 2, the issuer's name, the task hash as
// redemption context, and no origin.
func challenge(task stream.Hash) []byte {
	b := binary.BigEndian.AppendUint16(nil, tokenType)
	b = binary.BigEndian.AppendUint16(b, uint16(len(issuerName)))
	b = append(b, issuerName...)
	b = append(append(b, byte(len(task))), task[:]...)
	return binary.BigEndian.AppendUint16(b, 0)
}

// A Hash represents a nonce in a stage's memory and lists: the first 16 bytes of SHA-256 of "panlearn grant", a zero
// byte, the task hash and the nonce.
type Hash [HashSize]byte

// A Task holds what tokens of one task have in common. Its methods may be called from any goroutine.
type Task struct {
	hash   stream.Hash
	spki   []byte
	key    *rsa.PublicKey
	client blindrsa.Client
	rest   []byte // of the token input, behind the nonce
}

// Of returns the tokens of a task for an issuer with this public key.
func Of(spki []byte, task stream.Hash) (*Task, error) {
	key, err := ParseKey(spki)
	if err != nil {
		return nil, fmt.Errorf("issuer key: %w", err)
	}
	t := &Task{hash: task, spki: bytes.Clone(spki), key: key}
	if t.client, err = blindrsa.NewClient(variant, key); err != nil {
		return nil, fmt.Errorf("issuer key: %w", err)
	}
	challenge, id := sha256.Sum256(challenge(task)), KeyID(spki)
	t.rest = append(challenge[:], id[:]...)
	return t, nil
}

// Input returns what is signed, 98 bytes: the type, the nonce, SHA-256 of the challenge, and the key id (RFC 9577, section
// 2.2).
func (t *Task) Input(nonce [NonceSize]byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+NonceSize+len(t.rest)), tokenType)
	return append(append(b, nonce[:]...), t.rest...)
}

// errToken means that a token is not of this task, or not signed at all. It has no details: an error never quotes a
// device.
var errToken = errors.New("a token that the issuer of this task did not sign")

// Verify checks a nonce and its signature, Size bytes, and returns what is kept of the nonce.
func (t *Task) Verify(token []byte) (Hash, error) {
	if len(token) != Size {
		return Hash{}, errToken
	}
	nonce := [NonceSize]byte(token)
	digest := sha512.Sum384(t.Input(nonce)) // an ordinary PSS signature, which the standard library verifies faster
	if rsa.VerifyPSS(t.key, crypto.SHA384, digest[:], token[NonceSize:], &pss) != nil {
		return Hash{}, errToken
	}
	return t.Spent(nonce), nil
}

// Spent returns what a stage keeps of a nonce.
func (t *Task) Spent(nonce [NonceSize]byte) Hash {
	h := sha256.New()
	h.Write([]byte("panlearn grant\x00"))
	h.Write(t.hash[:])
	h.Write(nonce[:])
	return Hash(h.Sum(nil))
}
