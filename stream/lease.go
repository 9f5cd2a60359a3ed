package stream

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// A Lease is the record on a task's lease subject: which stage process works, and until when. It is not signed. To
// devices it is a hint of where the newest round is.
//
// Record, 29 bytes:
//
//	version    1 byte, 1
//	instance  16 bytes, of the holder
//	ttl        4 bytes, big endian, milliseconds; 0: given up
//	newest     8 bytes, big endian, the newest round that the holder knows; 0: none
type Lease struct {
	Instance [InstanceSize]byte
	TTL      time.Duration // at most 2^32 - 1 ms
	Newest   Round
}

const (
	leaseVersion = 1
	leaseSize    = 1 + InstanceSize + 4 + 8
)

var errLease = errors.New("not the record of a lease that this program reads")

// Record encodes a lease.
func (l Lease) Record() []byte {
	b := append(make([]byte, 0, leaseSize), leaseVersion)
	b = append(b, l.Instance[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(min(l.TTL.Milliseconds(), math.MaxUint32)))
	return binary.BigEndian.AppendUint64(b, uint64(l.Newest))
}

// ParseLease decodes what Record wrote, and nothing else.
func ParseLease(data []byte) (Lease, error) {
	if len(data) != leaseSize || data[0] != leaseVersion {
		return Lease{}, errLease
	}
	data = data[1:]
	return Lease{
		Instance: [InstanceSize]byte(data),
		TTL:      time.Duration(binary.BigEndian.Uint32(data[InstanceSize:])) * time.Millisecond,
		Newest:   Round(binary.BigEndian.Uint64(data[InstanceSize+4:])),
	}, nil
}
