package stream

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream/wire"
)

// ElementSize is the number of bytes of one element of Prio3's field, of which an aggregate share has one a coordinate.
const ElementSize = 16

// maxPublicShare bounds the public share of one user, in bytes: two random numbers of Prio3.
const maxPublicShare = 64

// paired is a message that names an attempt of trust split: beside its number the hashes of the signed Open and Join.
type paired interface {
	GetOpenHash() []byte
	GetJoinHash() []byte
}

// pair checks that both hashes are there.
func pair(m paired) error {
	return errors.Join(length("open_hash", m.GetOpenHash(), HashSize), length("join_hash", m.GetJoinHash(), HashSize))
}

// pairOrNone checks that both hashes are there or neither is. manifest.CheckAttempt checks which of the two the task
// requires.
func pairOrNone(m paired) error {
	if len(m.GetOpenHash()) == 0 && len(m.GetJoinHash()) == 0 {
		return nil
	}
	return pair(m)
}

func validateJoin(m *wire.Join) error {
	err := errors.Join(header(m), length("instance", m.Instance, InstanceSize), suite(m.Suite),
		atLeastOne("attempt", m.Attempt), length("manifest_hash", m.ManifestHash, HashSize),
		length("open_hash", m.OpenHash, HashSize), length("verify_key_hash", m.VerifyKeyHash, HashSize))
	if m.Suite == wire.Suite_SUITE_NONE {
		err = errors.Join(err, errors.New("suite SUITE_NONE: two operators take encrypted reports alone"))
	}
	if len(m.KeyEncapsulated) == 0 || len(m.KeyCiphertext) == 0 {
		err = errors.Join(err, errors.New("no verify key"))
	}
	return err
}

func validateShare(m *wire.Share) error {
	err := errors.Join(header(m), atLeastOne("attempt", m.Attempt), pair(m), length("chain", m.Chain, HashSize),
		short("refusal", m.Refusal))
	switch n := len(m.Aggregate); {
	case m.Refusal != "" && (n != 0 || m.Users != 0):
		err = errors.Join(err, errors.New("a refusal carries totals"))
	case m.Refusal == "" && (n == 0 || n%ElementSize != 0 || n > MaxDim*ElementSize || m.Users == 0 || m.Requests == 0):
		err = errors.Join(err, fmt.Errorf("aggregate of %d bytes, users %d, requests %d: want %d bytes a coordinate, and both",
			n, m.Users, m.Requests, ElementSize))
	}
	return err
}

func validateExchange(m *wire.Exchange) error {
	err := errors.Join(header(m), atLeastOne("attempt", m.Attempt), pair(m))
	if _, known := wire.Verb_name[int32(m.Verb)]; !known || m.Verb == wire.Verb_VERB_UNSPECIFIED {
		return errors.Join(err, fmt.Errorf("verb %d: unknown", m.Verb))
	}
	closed := m.Verb == wire.Verb_VERB_REQUEST || m.Verb == wire.Verb_VERB_REPLY
	if closed != (m.Number > 0) {
		err = errors.Join(err, fmt.Errorf("number %d: want one of a request or reply, else 0", m.Number))
	}
	if closed != (len(m.Encapsulated) > 0) || closed != (len(m.Ciphertext) > 0) || closed == (len(m.Plain) > 0) {
		err = errors.Join(err, errors.New("want a request or reply sealed, and all else in clear"))
	}
	return err
}

// validateShares checks what a report has beside the leader's part: all that two operators need, or nothing.
func validateShares(m *wire.Report) error {
	if len(m.PublicShares) == 0 {
		return errors.Join(length("helper_encapsulated", m.HelperEncapsulated, 0),
			length("helper_ciphertext", m.HelperCiphertext, 0))
	}
	if len(m.PublicShares) != len(m.Ids) || len(m.HelperEncapsulated) == 0 || len(m.HelperCiphertext) == 0 {
		return fmt.Errorf("%d public shares of %d ids: want one each, and a part for the helper", len(m.PublicShares),
			len(m.Ids))
	}
	for _, p := range m.PublicShares {
		if len(p) == 0 || len(p) > maxPublicShare || len(p) != len(m.PublicShares[0]) {
			return fmt.Errorf("public share of %d bytes: want all alike, 1 to %d", len(p), maxPublicShare)
		}
	}
	return nil
}
