package participation

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A Key names one user's event within a task, the same in every run. It never leaves the device. The zero Key is
// refused.
type Key [16]byte

// RowKey is the key of row number (from 0) of a source, such as the absolute path of a file. Rows of one source are
// neighbours in a store.
func RowKey(source string, number int64) Key {
	h := sha256.Sum256([]byte("row\x00" + source))
	var k Key
	copy(k[:8], h[:8])
	binary.BigEndian.PutUint64(k[8:], uint64(number))
	return k
}

// EventKey is the key of an event that its owner names: a user's id, or an id of the event.
func EventKey(name string) Key {
	h := sha256.Sum256([]byte("event\x00" + name))
	return Key(h[:16])
}

// Format prints a placeholder under every verb: a key is a hash of a name that could be guessed.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("participation.Key{redacted}")) }
