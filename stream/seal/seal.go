package seal

import (
	"crypto/hpke"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Seal seals the reports of len(ids) users for one round attempt into one message. The plaintext is the users'
// reports in the order of ids, of a length that depends on the task alone. SUITE_NONE carries the plaintext as it
// is, bound to nothing.
//
// Every call draws a fresh encapsulation: sealing the same counts again for another attempt shows nothing.
func Seal(suite wire.Suite, c Context, taskHash stream.Hash, ids [][16]byte, plaintext []byte) (*wire.Report, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	if len(plaintext) == 0 {
		return nil, errors.New("seal report: empty plaintext")
	}
	r := &wire.Report{Version: stream.Version, TaskHash: taskHash[:], Ids: make([][]byte, len(ids))}
	seen := make(map[[16]byte]bool, len(ids))
	for i, id := range ids {
		if seen[id] {
			return nil, fmt.Errorf("seal report: ids %d and an earlier one are the same: want one random id a user", i)
		}
		seen[id] = true
		r.Ids[i] = id[:]
	}
	if err := stream.Check(r); err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	public, err := publicKey(suite, c.Public)
	if err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	if public == nil {
		r.Ciphertext = append([]byte(nil), plaintext...)
		return r, nil
	}
	enc, sender, err := hpke.NewSender(public, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), c.Info())
	if err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	r.Encapsulated = enc
	if r.Ciphertext, err = sender.Seal(associated(r.Ids), plaintext); err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	return r, nil
}
