package state

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

const (
	ledgerVersion = 1
	ledgerMagic   = "PLLS"
	ledgerSums    = 8 + 32 + 32 + 6*8 + 2*8 + 1
)

// appendBody appends the fields of l. Integers are big-endian:
//
//	offset  bytes
//	0       8   length
//	8       64  hash, task hash
//	72      64  steps, voids, voids in a row, counted, phase, most, and the IEEE 754 bits of the largest epsilon and delta: 8 each
//	136     1   1 if a reservation is open, else 0
//	137         the open reservation, as Entry encodes it
func (l Ledger) appendBody(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, l.Head.Length)
	b = append(b, l.Head.Hash[:]...)
	b = append(b, l.TaskHash[:]...)
	for _, v := range [...]uint64{l.Steps, l.Voids, l.InARow, l.Counted, l.Phase, l.Most,
		math.Float64bits(l.Worst.Epsilon), math.Float64bits(l.Worst.Delta)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	if !l.IsOpen() {
		return append(b, 0)
	}
	b = l.Open.appendBody(append(b, 1))
	return append(b, l.Open.Hash[:]...)
}

// readLedger reads the encoding that appendBody wrote, and returns the bytes behind it.
func readLedger(b []byte) (l Ledger, rest []byte, err error) {
	if len(b) < ledgerSums {
		return Ledger{}, nil, fmt.Errorf("ledger: truncated to %d bytes", len(b))
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[72+8*i:]) }
	l = Ledger{
		Head: head{Length: binary.BigEndian.Uint64(b), Hash: Hash(b[8:40])}, TaskHash: Hash(b[40:72]),
		Steps: word(0), Voids: word(1), InARow: word(2), Counted: word(3), Phase: word(4), Most: word(5),
		Worst: Cost{Epsilon: math.Float64frombits(word(6)), Delta: math.Float64frombits(word(7))},
	}
	open, rest := b[ledgerSums-1], b[ledgerSums:]
	switch {
	case open == 1 && len(rest) >= EntryBytes:
		if err := l.Open.UnmarshalBinary(rest[:EntryBytes]); err != nil {
			return Ledger{}, nil, err
		}
		rest = rest[EntryBytes:]
	case open != 0:
		return Ledger{}, nil, fmt.Errorf("ledger: damaged mark %d of an open reservation, %d bytes before the end", open,
			len(rest))
	}
	return l, rest, l.validate()
}

// MarshalBinary returns the canonical encoding of l:
//
//	offset  bytes
//	0       4   "PLLS"
//	4       2   version (1)
//	6           head, task hash and sums, as in a checkpoint
//	end-32  32  SHA-256 of everything before
//
// It fails if l is not valid.
func (l Ledger) MarshalBinary() ([]byte, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint16([]byte(ledgerMagic), ledgerVersion)
	b = l.appendBody(b)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// UnmarshalBinary reads the encoding of MarshalBinary. Bytes that it accepts encode back to themselves; everything else
// is an error and leaves l as it was.
func (l *Ledger) UnmarshalBinary(data []byte) error {
	if len(data) < 6+sha256.Size || string(data[:4]) != ledgerMagic {
		return fmt.Errorf("ledger: %d bytes without the mark %q: not sums or damaged", len(data), ledgerMagic)
	}
	if v := binary.BigEndian.Uint16(data[4:]); v != ledgerVersion {
		return &VersionError{What: "ledger", Got: v, Want: ledgerVersion}
	}
	body := data[:len(data)-sha256.Size]
	if sum := sha256.Sum256(body); string(sum[:]) != string(data[len(body):]) {
		return fmt.Errorf("ledger: checksum does not match the %d bytes of its sums: damaged, restore a backup", len(data))
	}
	got, rest, err := readLedger(body[6:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("ledger: %d bytes after its sums", len(rest))
	}
	if err != nil {
		return err
	}
	*l = got
	return nil
}
