package seal

import (
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
	list, err := distinct(ids)
	if err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	r := &wire.Report{Version: stream.Version, TaskHash: taskHash[:], Ids: list}
	if err := stream.Check(r); err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	if suite == wire.Suite_SUITE_NONE {
		if err := CheckPublic(suite, c.Public); err != nil {
			return nil, fmt.Errorf("seal report: %w", err)
		}
		r.Ciphertext = append([]byte(nil), plaintext...)
		return r, nil
	}
	if r.Encapsulated, r.Ciphertext, err = sealTo(suite, c.Public, c.Info(), associated(r.Ids), plaintext); err != nil {
		return nil, fmt.Errorf("seal report: %w", err)
	}
	return r, nil
}

// distinct returns the ids as the fields of a message, or an error if two are the same.
func distinct(ids [][16]byte) ([][]byte, error) {
	list, seen := make([][]byte, len(ids)), make(map[[16]byte]bool, len(ids))
	for i, id := range ids {
		if seen[id] {
			return nil, fmt.Errorf("ids %d and an earlier one are the same: want one random id a user", i)
		}
		seen[id] = true
		list[i] = id[:]
	}
	return list, nil
}
