package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// accountVersion is the first byte of every account's record. Version 1 had no rounds and most: every user answered one round.
// It is still read, because a ledger outlives tasks and must not be forgotten.
const accountVersion = 2

// maxCharges bounds the tasks of one account.
const maxCharges = 1 << 16

var errAccount = errors.New("damaged record of a ledger's account")

// MarshalBinary encodes the charges of an account:
//
//	version 2            1 byte
//	n                    uvarint, then n times
//	task hash            32 bytes
//	length, name         uvarint, bytes
//	epsilon, delta       8 bytes each: IEEE 754, big endian
//	rounds, most         uvarint each; not in version 1
//	standing, open       uvarint each
//	flags                1 byte: 1 anonymous, 2 lost
//	at                   uvarint: milliseconds since 1970
func (a Account) MarshalBinary() ([]byte, error) { return a.marshal(accountVersion) }

func (a Account) marshal(version byte) ([]byte, error) {
	if len(a.Charges) > maxCharges {
		return nil, fmt.Errorf("encode account: %d tasks: want at most %d", len(a.Charges), maxCharges)
	}
	b := []byte{version}
	b = binary.AppendUvarint(b, uint64(len(a.Charges)))
	for i, c := range a.Charges {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("encode charge %d: %w", i, err)
		}
		b = append(b, c.Task[:]...)
		b = binary.AppendUvarint(b, uint64(len(c.Name)))
		b = append(b, c.Name...)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Epsilon))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Delta))
		if version > 1 {
			b = binary.AppendUvarint(b, uint64(c.Rounds))
			b = binary.AppendUvarint(b, uint64(c.Most))
		}
		b = binary.AppendUvarint(b, c.Standing)
		b = binary.AppendUvarint(b, c.Open)
		var flags byte
		if c.Anonymous {
			flags |= 1
		}
		if c.Lost {
			flags |= 2
		}
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(c.At.UnixMilli()))
	}
	return b, nil
}

// check refuses what no device computes; a budget that is not a number would never be spent.
func (c Charge) check() error {
	_, err := stream.ParseTask(string(c.Name))
	switch {
	case err != nil:
		return err
	case !(c.Epsilon >= 0 && c.Epsilon <= math.MaxFloat64):
		return fmt.Errorf("epsilon %v: want finite, at least 0", c.Epsilon)
	case !(c.Delta >= 0 && c.Delta < 1):
		return fmt.Errorf("delta %v: want in [0, 1)", c.Delta)
	case c.Open > c.Standing:
		return fmt.Errorf("%d events open of %d", c.Open, c.Standing)
	case c.At.UnixMilli() < 0:
		return fmt.Errorf("time %v: want 1970 or later", c.At)
	}
	return nil
}

// UnmarshalBinary decodes what MarshalBinary wrote, or did in version 1, and nothing else. It leaves Key alone and keeps no reference to data.
func (a *Account) UnmarshalBinary(data []byte) error {
	r := reader{data: data}
	version := r.byte()
	switch {
	case version > accountVersion:
		return fmt.Errorf("record of a ledger's account: version %d, of a newer program: this one reads up to %d", version, accountVersion)
	case version < 1:
		return errAccount
	}
	n := r.uint64()
	if n > maxCharges {
		return errAccount
	}
	b := Account{Key: a.Key}
	for range n {
		var c Charge
		r.copy(c.Task[:])
		length := r.uint64()
		if r.bad || length > uint64(len(r.data)) {
			return errAccount
		}
		name := make([]byte, length)
		r.copy(name)
		c.Name = stream.Task(name)
		var words [16]byte
		r.copy(words[:])
		c.Epsilon = math.Float64frombits(binary.BigEndian.Uint64(words[:8]))
		c.Delta = math.Float64frombits(binary.BigEndian.Uint64(words[8:]))
		if c.Most = 1; version > 1 {
			c.Rounds, c.Most = r.uint32(), r.uint32()
		}
		c.Standing, c.Open = r.uint64(), r.uint64()
		if version == 1 && c.Standing > 0 {
			c.Rounds = 1
		}
		flags := r.byte()
		c.Anonymous, c.Lost = flags&1 != 0, flags&2 != 0
		at := r.uint64()
		if at > math.MaxInt64 {
			return errAccount
		}
		c.At = time.UnixMilli(int64(at)).UTC()
		b.Charges = append(b.Charges, c)
	}
	if r.bad || len(r.data) != 0 {
		return errAccount
	}
	if again, err := b.marshal(version); err != nil || !bytes.Equal(again, data) {
		return errAccount
	}
	*a = b
	return nil
}
