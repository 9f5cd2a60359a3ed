// Package participation remembers durably who took part in what: for each user's event a [Record], an automaton without
// clock, network or disk, and a [Store] that keeps it.
//
// It promises that an event takes part in one round, or in the rounds of one interactive phase, each once, and in
// another only if no batch can hold it; in doubt it was counted. It promises that for keys, not for people: several
// rows of one person are several users to it.
//
// # What a caller owes
//
//  1. [Record.Join] with a draw of its own for every round, then [Record.Sending] for every publish; both durable
//     ([Store.Write]) before the publish is made.
//  2. [Record.Acked] for every answer, and [Record.Decide] when a verified Close is there and no answer is on its
//     way.
//  3. The store as long as the task lives. It must not be restored from a backup: an older copy has forgotten who
//     took part.
package participation

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A Key names one user's event within a task, the same in every run. It never leaves the device. The zero Key is
// refused.
type Key [16]byte

// RowKey returns the key of row number (from 0) of a source, such as the absolute path of a file. Rows of one source
// are neighbours in a store.
func RowKey(source string, number int64) Key {
	h := sha256.Sum256([]byte("row\x00" + source))
	var k Key
	copy(k[:8], h[:8])
	binary.BigEndian.PutUint64(k[8:], uint64(number))
	return k
}

// EventKey returns the key of an event that its owner names: a user's id, or an id of the event.
func EventKey(name string) Key {
	h := sha256.Sum256([]byte("event\x00" + name))
	return Key(h[:16])
}

// Format prints a placeholder under every verb: a key is a hash of a name that could be guessed.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("participation.Key{redacted}")) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (k Key) MarshalText() ([]byte, error) { return fmt.Append(nil, k), nil }
