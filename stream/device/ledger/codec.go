package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// version is the first byte of every account's record.
const version = 1

// maxCharges bounds the tasks of one account.
const maxCharges = 1 << 16

var errAccount = errors.New("damaged record of a ledger's account")

// A chargeRecord is a charge as it is stored, big endian, the fields in their order without gaps. The name ends in
// zeros, At is in milliseconds since 1970.
type chargeRecord struct {
	Task            stream.Hash
	Name            [32]byte
	Epsilon, Delta  float64
	Rounds, Most    uint32
	Standing, Open  uint64
	Anonymous, Lost bool
	ByUser          bool
	At              int64
}

var chargeSize = binary.Size(chargeRecord{})

// MarshalBinary encodes the charges of an account: the version, 1 byte, and a chargeRecord for each of them. It
// refuses what no device computes.
func (a Account) MarshalBinary() ([]byte, error) {
	if len(a.Charges) > maxCharges {
		return nil, fmt.Errorf("encode account: %d tasks: want at most %d", len(a.Charges), maxCharges)
	}
	b := []byte{version}
	for i, c := range a.Charges {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("encode charge %d: %w", i, err)
		}
		r := chargeRecord{Task: c.Task, Epsilon: c.Epsilon, Delta: c.Delta, Rounds: c.Rounds, Most: c.Most,
			Standing: c.Standing, Open: c.Open,
			Anonymous: c.Anonymous, Lost: c.Lost, ByUser: c.ByUser, At: c.At.UnixMilli()}
		copy(r.Name[:], c.Name) // check knows that it fits
		var err error
		if b, err = binary.Append(b, binary.BigEndian, r); err != nil {
			return nil, fmt.Errorf("encode charge %d: %w", i, err)
		}
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

// UnmarshalBinary decodes what MarshalBinary wrote, and nothing else. It leaves Key alone and keeps no reference to
// data.
func (a *Account) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return errAccount
	}
	if data[0] != version {
		return fmt.Errorf("record of a ledger's account: version %d, of another program: this one reads %d: use the program that wrote it or a newer one", data[0], version)
	}
	rest := data[1:]
	if len(rest)%chargeSize != 0 || len(rest)/chargeSize > maxCharges {
		return errAccount
	}
	b := Account{Key: a.Key}
	for ; len(rest) > 0; rest = rest[chargeSize:] {
		var r chargeRecord
		if _, err := binary.Decode(rest, binary.BigEndian, &r); err != nil {
			return errAccount
		}
		b.Charges = append(b.Charges, Charge{Task: r.Task, Name: stream.Task(bytes.TrimRight(r.Name[:], "\x00")),
			Epsilon: r.Epsilon, Delta: r.Delta,
			Rounds: r.Rounds, Most: r.Most, Standing: r.Standing, Open: r.Open, Anonymous: r.Anonymous, Lost: r.Lost,
			ByUser: r.ByUser, At: time.UnixMilli(r.At).UTC()})
	}
	if again, err := b.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
		return errAccount
	}
	*a = b
	return nil
}
