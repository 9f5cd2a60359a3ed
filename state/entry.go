package state

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// EntryBytes is the length of an encoded entry.
const EntryBytes = entryBody + 32

const (
	entryVersion = 1
	entryMagic   = "PLLE"
	entryBody    = 4 + 2 + 1 + 8*8 + 3*32
	entryDomain  = "panlearn ledger entry v1\x00"
)

// Hash is a SHA-256 value: of a task, of a signed batch, of a ledger entry. The zero Hash means none.
type Hash [32]byte

// IsZero reports whether h is the zero Hash, which means "none".
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns what String returns.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 lower-case hexadecimal digits, and nothing else.
func (h *Hash) UnmarshalText(text []byte) error {
	var got Hash
	if len(text) != 2*len(got) {
		return fmt.Errorf("hash has %d characters, want %d hexadecimal digits", len(text), 2*len(got))
	}
	if _, err := hex.Decode(got[:], text); err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	if got.String() != string(text) {
		return fmt.Errorf("hash has upper-case digits, want lower case")
	}
	*h = got
	return nil
}

// An EntryKind is the event of a round that an entry records.
type EntryKind uint8

const (
	// Reserved charges a round's worst case before the round is announced.
	Reserved EntryKind = 1
	// Spent replaces the reservation by the cost of the batch that was released.
	Spent EntryKind = 2
	// Void records that the round released nothing that was used; its reservation stays charged.
	Void EntryKind = 3
)

// String returns "reserved", "spent" or "void".
func (k EntryKind) String() string {
	switch k {
	case Reserved:
		return "reserved"
	case Spent:
		return "spent"
	case Void:
		return "void"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Cost is an upper bound on privacy loss: (epsilon, delta)-differential privacy.
type Cost struct {
	Epsilon float64 // finite, at least 0
	Delta   float64 // from 0 to 1
}

// validate refuses NaN, infinities, negative values (negative zero too: it has a second encoding) and delta above 1.
func (c Cost) validate() error {
	if math.IsNaN(c.Epsilon) || math.IsInf(c.Epsilon, 0) || math.Signbit(c.Epsilon) {
		return fmt.Errorf("epsilon is %v, want a finite number at least 0", c.Epsilon)
	}
	if math.IsNaN(c.Delta) || math.Signbit(c.Delta) || c.Delta > 1 {
		return fmt.Errorf("delta is %v, want a number from 0 to 1", c.Delta)
	}
	return nil
}

// over returns the larger of each part of two costs.
func (c Cost) over(other Cost) Cost {
	return Cost{Epsilon: max(c.Epsilon, other.Epsilon), Delta: max(c.Delta, other.Delta)}
}

// String returns "(epsilon, delta)", unrounded: rounded to nearest, an upper bound may be none.
func (c Cost) String() string { return fmt.Sprintf("(%v, %v)", c.Epsilon, c.Delta) }

// An Entry is one line of the privacy ledger. Every figure in it is public.
type Entry struct {
	Sequence uint64 // 1 for the first entry
	Kind     EntryKind
	Round    uint64
	Attempt  uint64 // of the batch; 0 in a reservation
	Users    uint64 // accepted reports; in a reservation the smallest cohort that may be released
	// NoiseTrials counts all binomial trials in each total, including those of users who are not assumed honest. The cost
	// is computed from the honest share of them.
	NoiseTrials uint64
	// Phase numbers, from 1, the interactive phase whose users answer the round together with others; 0: it has users
	// of its own.
	Phase uint64
	// cost for a user who takes part in this round, and in all rounds of its phase if users answer several
	Epsilon   float64
	Delta     float64
	TaskHash  Hash
	BatchHash Hash // zero in a reservation
	Previous  Hash // Hash of the entry before, zero in the first
	// Hash is SHA-256 over a domain prefix and the encoding of all the fields above.
	Hash Hash
}

// Cost returns the entry's epsilon and delta.
func (e Entry) Cost() Cost { return Cost{e.Epsilon, e.Delta} }

// appendBody appends everything but the hash.
func (e Entry) appendBody(b []byte) []byte {
	b = append(b, entryMagic...)
	b = binary.BigEndian.AppendUint16(b, entryVersion)
	b = append(b, byte(e.Kind))
	for _, v := range [...]uint64{e.Sequence, e.Round, e.Attempt, e.Users, e.NoiseTrials, e.Phase,
		math.Float64bits(e.Epsilon), math.Float64bits(e.Delta)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, e.TaskHash[:]...)
	b = append(b, e.BatchHash[:]...)
	return append(b, e.Previous[:]...)
}

func (e Entry) computeHash() Hash {
	b := make([]byte, 0, len(entryDomain)+entryBody)
	return sha256.Sum256(e.appendBody(append(b, entryDomain...)))
}

// validate checks the entry alone: its figures and its hash, not its place in the chain.
func (e Entry) validate() error {
	if err := e.validateFields(); err != nil {
		return fmt.Errorf("ledger entry %d: %w", e.Sequence, err)
	}
	if h := e.computeHash(); h != e.Hash {
		return fmt.Errorf("ledger entry %d: hash is %s, its content has %s: the ledger was damaged or changed", e.Sequence,
			e.Hash, h)
	}
	return nil
}

func (e Entry) validateFields() error {
	switch {
	case e.Kind != Reserved && e.Kind != Spent && e.Kind != Void:
		return fmt.Errorf("kind is %d, want %d to %d", e.Kind, Reserved, Void)
	case e.Sequence == 0:
		return fmt.Errorf("sequence is 0, want at least 1")
	case e.Round == 0:
		return fmt.Errorf("round is 0, want at least 1")
	case e.Users == 0:
		return fmt.Errorf("users is 0 in round %d, want at least 1", e.Round)
	case e.TaskHash.IsZero():
		return fmt.Errorf("task hash is zero, want the hash of the task")
	case e.Kind == Reserved && (e.Attempt != 0 || !e.BatchHash.IsZero()):
		return fmt.Errorf("reservation of round %d names a batch (attempt %d, hash %s), want none", e.Round, e.Attempt,
			e.BatchHash)
	case e.Kind == Spent && e.BatchHash.IsZero():
		return fmt.Errorf("spent round %d has a zero batch hash, want the hash of its batch", e.Round)
	}
	return e.Cost().validate()
}

// MarshalBinary returns the canonical encoding of e, EntryBytes long. Integers are big-endian:
//
//	offset  bytes
//	0       4   "PLLE"
//	4       2   version (1)
//	6       1   kind: 1 reserved, 2 spent, 3 void
//	7       64  sequence, round, attempt, users, noise trials, phase, and the IEEE 754 bits of epsilon and delta: 8 each
//	71      96  task hash, batch hash, previous hash
//	167     32  hash: SHA-256 of "panlearn ledger entry v1" and a zero byte, then bytes 0 to 166
//
// It fails if e is not valid.
func (e Entry) MarshalBinary() ([]byte, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	return append(e.appendBody(make([]byte, 0, EntryBytes)), e.Hash[:]...), nil
}

// UnmarshalBinary reads the encoding of MarshalBinary. Bytes that it accepts encode back to themselves;
// everything else is an error and leaves e as it was.
func (e *Entry) UnmarshalBinary(data []byte) error {
	if len(data) < 6 || string(data[:4]) != entryMagic {
		return fmt.Errorf("ledger entry: %d bytes without the mark %q: not an entry or damaged", len(data), entryMagic)
	}
	if v := binary.BigEndian.Uint16(data[4:]); v != entryVersion {
		return &VersionError{What: "ledger entry", Got: v, Want: entryVersion}
	}
	if len(data) != EntryBytes {
		return fmt.Errorf("ledger entry: has %d bytes, want %d", len(data), EntryBytes)
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(data[7+8*i:]) }
	got := Entry{
		Kind:     EntryKind(data[6]),
		Sequence: word(0), Round: word(1), Attempt: word(2), Users: word(3), NoiseTrials: word(4), Phase: word(5),
		Epsilon: math.Float64frombits(word(6)), Delta: math.Float64frombits(word(7)),
		TaskHash: Hash(data[71:103]), BatchHash: Hash(data[103:135]), Previous: Hash(data[135:167]),
		Hash: Hash(data[167:]),
	}
	if err := got.validate(); err != nil {
		return err
	}
	*e = got
	return nil
}
