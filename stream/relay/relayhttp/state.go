package relayhttp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A Hash is the SHA-256 of the bytes of a record, as the broker holds them.
type Hash [sha256.Size]byte

// HashOf returns the hash of a record's bytes.
func HashOf(record []byte) Hash { return sha256.Sum256(record) }

// A Mark names a record by its numbers and its hash. The zero Mark is none.
type Mark struct {
	Round    stream.Round   // 0 of Task and End, which have no numbers
	Attempt  stream.Attempt // 0 of those without
	Sequence uint64         // of the record in its stream, from 1; 0: no record
	Hash     Hash
}

// A State names the records that are the newest, as far as a relay knows. It is not signed and decides nothing: a reader
// verifies the records.
//
// Bytes: version, 1 byte, 1; then of each of task, end, round, open, claim and close 56 bytes: round 8, attempt 8,
// sequence 8, hash 32, all 0 where there is none; of version 2, which has a Join, 56 bytes of it; then of the lease the time at which the broker stored it, 8 bytes, Unix
// time in nanoseconds, 0 where it is not known; the rest is the lease's record, which may be empty.
type State struct {
	Task, End Mark
	Round     Mark // newest round
	Open      Mark // newest attempt at the newest round, or at the round that was asked for
	Claim     Mark
	Close     Mark
	// Join is of the attempt of Open, in a task of two operators: both are shown together, once both exist. Otherwise it
	// is the zero Mark.
	Join Mark

	LeaseTime time.Time // zero: not known
	Lease     []byte
}

const (
	markSize = 8 + 8 + 8 + sha256.Size
	// paired is the version of a State that has a Join.
	paired = 2
)

var errState = errors.New("not the state of a task that this program reads")

// Marks returns all marks in the order of their bytes.
func (s *State) Marks() []*Mark {
	return []*Mark{&s.Task, &s.End, &s.Round, &s.Open, &s.Claim, &s.Close, &s.Join}
}

func (s *State) marks() []byte {
	all, v := s.Marks(), byte(paired)
	if s.Join == (Mark{}) {
		all, v = all[:len(all)-1], version
	}
	b := append(make([]byte, 0, 1+len(all)*markSize+8+64), v)
	for _, m := range all {
		b = binary.BigEndian.AppendUint64(b, uint64(m.Round))
		b = binary.BigEndian.AppendUint64(b, uint64(m.Attempt))
		b = binary.BigEndian.AppendUint64(b, m.Sequence)
		b = append(b, m.Hash[:]...)
	}
	return b
}

// Tag returns 32 hexadecimal digits that are others where a mark is another one, whatever the lease is.
func (s *State) Tag() string {
	h := sha256.Sum256(s.marks())
	return hex.EncodeToString(h[:16])
}

// Bytes encodes a state.
func (s *State) Bytes() []byte {
	var stored uint64
	if !s.LeaseTime.IsZero() {
		stored = uint64(s.LeaseTime.UnixNano())
	}
	return append(binary.BigEndian.AppendUint64(s.marks(), stored), s.Lease...)
}

// ParseState decodes what Bytes wrote, and nothing else.
func ParseState(b []byte) (s State, err error) {
	all := s.Marks()
	switch {
	case len(b) == 0 || b[0] != version && b[0] != paired:
		return s, errState
	case b[0] == version:
		all = all[:len(all)-1]
	}
	if len(b) < 1+len(all)*markSize+8 {
		return s, errState
	}
	rest := b[1:]
	for _, m := range all {
		*m = Mark{Round: stream.Round(binary.BigEndian.Uint64(rest)), Attempt: stream.Attempt(binary.BigEndian.Uint64(rest[8:])),
			Sequence: binary.BigEndian.Uint64(rest[16:]), Hash: Hash(rest[24:markSize])}
		if m.Sequence == 0 && *m != (Mark{}) {
			return State{}, errState
		}
		rest = rest[markSize:]
	}
	if b[0] == paired && s.Join == (Mark{}) {
		return State{}, errState
	}
	if stored := binary.BigEndian.Uint64(rest); stored > 0 {
		s.LeaseTime = time.Unix(0, int64(stored))
	}
	s.Lease = append([]byte(nil), rest[8:]...)
	return s, nil
}
