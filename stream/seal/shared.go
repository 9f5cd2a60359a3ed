package seal

import (
	"bytes"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Party names one of the two operators of trust split.
type Party byte

// The parties, by their numbers in Prio3.
const (
	Leader Party = 0
	Helper Party = 1
)

// Labels of what two operators seal, each in front of its HPKE info.
const (
	sharesLabel    = "panlearn/v1/shares\x00"
	verifyKeyLabel = "panlearn/v1/verify-key\x00"
	exchangeLabel  = "panlearn/v1/exchange\x00"
)

// A SharedContext binds both ciphertexts of a report to one attempt of two operators: each opens under exactly this
// context, and for its party. Open and Join are the SHA-256 of the signed records, so that their keys are bound too.
type SharedContext struct {
	ManifestHash stream.Hash // of the canonical Round body
	TaskHash     stream.Hash
	Open, Join   stream.Hash
}

// common returns what the infos of both parties have in common:
//
//	"panlearn/v1/shares" 0x00
//	manifest hash             32 bytes
//	task hash                 32 bytes
//	hash of the signed Open   32 bytes
//	hash of the signed Join   32 bytes
func (c SharedContext) common() []byte {
	return slicesOf(sharesLabel, c.ManifestHash[:], c.TaskHash[:], c.Open[:], c.Join[:])
}

// Info returns the HPKE info of one party's ciphertext: the common part and the party's number, one byte.
func (c SharedContext) Info(to Party) []byte { return append(c.common(), byte(to)) }

// Prio3 returns Prio3's application context: SHA-256 of the part of Info that both parties have, since both need the
// same.
func (c SharedContext) Prio3() stream.Hash { return sha256.Sum256(c.common()) }

func slicesOf(label string, parts ...[]byte) []byte {
	return bytes.Join(append([][]byte{[]byte(label)}, parts...), nil)
}

// A SharedReport is the report of one or more users for two operators, before it is sealed. Public has a public share
// for each id. Leader and Helper are the users' input shares, one after the other. Associated is what both ciphertexts
// authenticate beside the context: split.AssociatedData of the users.
type SharedReport struct {
	IDs            [][16]byte
	Public         [][]byte
	Associated     []byte
	Leader, Helper []byte
}

// SharedKeys holds the HPKE keys of an attempt, as in Open and in Join.
type SharedKeys struct{ Leader, Helper []byte }

// Check returns an error unless both are keys of a suite that encrypts, and differ: equal keys are one operator.
func (k SharedKeys) Check(suite wire.Suite) error {
	if suite == wire.Suite_SUITE_NONE {
		return errors.New("two operators with suite SUITE_NONE: anybody could read both shares")
	}
	if err := CheckPublic(suite, k.Leader); err != nil {
		return fmt.Errorf("leader: %w", err)
	}
	if err := CheckPublic(suite, k.Helper); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	if bytes.Equal(k.Leader, k.Helper) {
		return errors.New("leader and helper have the same key of the attempt")
	}
	return nil
}

// SealShares seals a report for two operators into one message: each input share to its own party's key of the
// attempt. Every call draws fresh encapsulations.
func SealShares(suite wire.Suite, c SharedContext, keys SharedKeys, r SharedReport) (*wire.Report, error) {
	if err := keys.Check(suite); err != nil {
		return nil, fmt.Errorf("seal shares: %w", err)
	}
	if len(r.Associated) == 0 || len(r.Leader) == 0 || len(r.Helper) == 0 {
		return nil, errors.New("seal shares: want both shares and their associated data")
	}
	ids, err := distinct(r.IDs)
	if err != nil {
		return nil, fmt.Errorf("seal shares: %w", err)
	}
	out := &wire.Report{Version: stream.Version, TaskHash: c.TaskHash[:], Ids: ids, PublicShares: r.Public}
	if out.Encapsulated, out.Ciphertext, err = sealTo(suite, keys.Leader, c.Info(Leader), r.Associated, r.Leader); err == nil {
		out.HelperEncapsulated, out.HelperCiphertext, err = sealTo(suite, keys.Helper, c.Info(Helper), r.Associated, r.Helper)
	}
	if err == nil {
		err = stream.Check(out)
	}
	if err != nil {
		return nil, fmt.Errorf("seal shares: %w", err)
	}
	return out, nil
}

// Sealed returns one party's part of a report for two operators: encapsulated key and ciphertext, as OpenShares takes
// it.
func (p Party) Sealed(r *wire.Report) []byte {
	if p == Helper {
		return slicesOf("", r.HelperEncapsulated, r.HelperCiphertext)
	}
	return slicesOf("", r.Encapsulated, r.Ciphertext)
}

// OpenShares returns the input shares that a party's part of a report holds. ErrOpen means that it was not sealed to
// this key, context, party and associated data. The plaintext is the caller's to overwrite.
func (k *RoundKey) OpenShares(c SharedContext, p Party, sealed, associated []byte) ([]byte, error) {
	enc, _ := SealedSize(k.suite, 0)
	if len(sealed) < enc {
		return nil, fmt.Errorf("open shares: %w", ErrOpen)
	}
	plaintext, err := k.openFrom(c.Info(p), associated, sealed[:enc], sealed[enc:])
	if err != nil {
		return nil, fmt.Errorf("open shares: %w", err)
	}
	return plaintext, nil
}

// verifyKeyInfo binds the verify key of an attempt to its Open. The Join that carries it names the hash of the key, and
// is signed.
func verifyKeyInfo(manifest, task, open stream.Hash) []byte {
	return slicesOf(verifyKeyLabel, manifest[:], task[:], open[:])
}

// SealVerifyKey seals the verify key of an attempt to the key of its Open.
func SealVerifyKey(suite wire.Suite, public []byte, manifest, task, open stream.Hash, key []byte) (encapsulated,
	ciphertext []byte, err error) {
	if encapsulated, ciphertext, err = sealTo(suite, public, verifyKeyInfo(manifest, task, open), nil, key); err != nil {
		err = fmt.Errorf("seal verify key: %w", err)
	}
	return encapsulated, ciphertext, err
}

// OpenVerifyKey returns the verify key that a Join carries, which the caller compares with the Join's hash.
func (k *RoundKey) OpenVerifyKey(task stream.Hash, j *wire.Join) ([]byte, error) {
	info := verifyKeyInfo(stream.Hash(j.ManifestHash), task, stream.Hash(j.OpenHash))
	key, err := k.openFrom(info, nil, j.KeyEncapsulated, j.KeyCiphertext)
	if err != nil {
		return nil, fmt.Errorf("open verify key: %w", err)
	}
	return key, nil
}

// exchangeInfo binds a request or reply to its fields in clear: verb, attempt and number.
func exchangeInfo(m *wire.Exchange) []byte {
	info := slicesOf(exchangeLabel, []byte{byte(m.Verb)}, m.TaskHash, m.OpenHash, m.JoinHash)
	for _, n := range []uint64{m.Round, m.Attempt, m.Number} {
		info = binary.BigEndian.AppendUint64(info, n)
	}
	return info
}

// SealExchange seals plaintext into a request or reply, after its other fields are set, to the receiver's key of the
// attempt.
func SealExchange(suite wire.Suite, public []byte, m *wire.Exchange, plaintext []byte) (err error) {
	if m.Encapsulated, m.Ciphertext, err = sealTo(suite, public, exchangeInfo(m), nil, plaintext); err != nil {
		return fmt.Errorf("seal exchange: %w", err)
	}
	return nil
}

// OpenExchange returns the plaintext of a request or reply that was sealed to this key.
func (k *RoundKey) OpenExchange(m *wire.Exchange) ([]byte, error) {
	plaintext, err := k.openFrom(exchangeInfo(m), nil, m.Encapsulated, m.Ciphertext)
	if err != nil {
		return nil, fmt.Errorf("open exchange: %w", err)
	}
	return plaintext, nil
}

// sealTo seals plaintext to a key of a suite that encrypts, under a fresh encapsulation.
func sealTo(suite wire.Suite, public, info, associated, plaintext []byte) (encapsulated, ciphertext []byte, err error) {
	key, err := publicKey(suite, public)
	if err != nil {
		return nil, nil, err
	}
	if key == nil {
		return nil, nil, fmt.Errorf("%v does not encrypt", suite)
	}
	encapsulated, sender, err := hpke.NewSender(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info)
	if err != nil {
		return nil, nil, err
	}
	if ciphertext, err = sender.Seal(associated, plaintext); err != nil {
		return nil, nil, err
	}
	return encapsulated, ciphertext, nil
}

// openFrom is the inverse of sealTo, until the key is erased. It refuses keys of SUITE_NONE.
func (k *RoundKey) openFrom(info, associated, encapsulated, ciphertext []byte) ([]byte, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	switch {
	case k.erased:
		return nil, ErrErased
	case k.private == nil:
		return nil, ErrOpen
	}
	recipient, err := hpke.NewRecipient(encapsulated, k.private, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info)
	if err != nil {
		return nil, ErrOpen
	}
	plaintext, err := recipient.Open(associated, ciphertext)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}
