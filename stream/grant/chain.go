package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
)

// ListHashes is the most hashes in one list of spent nonces: half of a broker's usual message.
const ListHashes = 32768

// listHeader is the length of the bytes before the hashes of a list.
const listHeader = stream.HashSize + 8 + 8

// A Chain is s_r: it commits to every list up to a round. A Batch carries it.
type Chain = stream.Hash

// First returns s_0 of a task, before any list: SHA-256 of "panlearn spent", a zero byte, and the task hash.
func First(task stream.Hash) Chain {
	return sha256.Sum256(append([]byte("panlearn spent\x00"), task[:]...))
}

// Next returns s_r: SHA-256 of s_(r-1), the round and its step in 8 bytes each, big endian, and SHA-256 of all hashes of
// its lists.
func Next(before Chain, round stream.Round, step stream.Step, spent []Hash) Chain {
	lists := sha256.New()
	for i := range spent {
		lists.Write(spent[i][:])
	}
	b := binary.BigEndian.AppendUint64(bytes.Clone(before[:]), uint64(round))
	b = binary.BigEndian.AppendUint64(b, uint64(step))
	return sha256.Sum256(lists.Sum(b))
}

// ListSize returns the length in bytes of a list of so many hashes.
func ListSize(hashes int) int { return listHeader + hashes*HashSize }

// Parts returns how many lists a round with so many hashes has: at least one.
func Parts(spent uint64) uint64 { return max(1, (spent+ListHashes-1)/ListHashes) }

// Lists returns the lists of a round, of at most ListHashes hashes each, in order. The hashes are sorted.
//
//	s_(r-1)    32 bytes
//	step       8 bytes, big endian, of the round
//	n          8 bytes, big endian: the hashes of all lists of the round
//	hashes     16 bytes each, ascending over all lists
func Lists(before Chain, step stream.Step, spent []Hash) [][]byte {
	out := make([][]byte, 0, Parts(uint64(len(spent))))
	for rest := spent; ; {
		some := rest[:min(len(rest), ListHashes)]
		b := make([]byte, 0, listHeader+len(some)*HashSize)
		b = binary.BigEndian.AppendUint64(append(b, before[:]...), uint64(step))
		b = binary.BigEndian.AppendUint64(b, uint64(len(spent)))
		for i := range some {
			b = append(b, some[i][:]...)
		}
		out = append(out, b)
		if rest = rest[len(some):]; len(rest) == 0 {
			return out
		}
	}
}

// A List is one list of a round as it is on the broker.
type List struct {
	Before Chain
	Step   stream.Step
	Spent  uint64 // in all lists of the round
	Hashes []Hash // of this one
}

var errList = errors.New("not a list of spent nonces")

// ParseList reads list k of a round, from 1.
func ParseList(data []byte, k uint64) (List, error) {
	if len(data) < listHeader || (len(data)-listHeader)%HashSize != 0 {
		return List{}, errList
	}
	l := List{Before: Chain(data), Step: stream.Step(binary.BigEndian.Uint64(data[stream.HashSize:])),
		Spent: binary.BigEndian.Uint64(data[stream.HashSize+8:])}
	body := data[listHeader:]
	n := uint64(len(body) / HashSize)
	if l.Spent > mostSpent || k == 0 || k > Parts(l.Spent) || n != min(ListHashes, l.Spent-(k-1)*ListHashes) {
		return List{}, fmt.Errorf("%w: %d hashes in list %d of %d", errList, n, k, l.Spent)
	}
	l.Hashes = make([]Hash, n)
	for i := range l.Hashes {
		l.Hashes[i] = Hash(body[i*HashSize:])
		if i > 0 && bytes.Compare(l.Hashes[i-1][:], l.Hashes[i][:]) >= 0 {
			return List{}, fmt.Errorf("%w: hashes in another order", errList)
		}
	}
	return l, nil
}

// mostSpent bounds what a list may say of its round, so that no broker makes a stage read for ever.
const mostSpent = 1 << 40
