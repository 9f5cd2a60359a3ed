package device

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"time"
)

// A chance draws what a device decides by lot: ids, turns and waits, and no noise. It fills bytes as crypto/rand.Read
// does, which never fails: it ends the process instead.
type chance func([]byte) (int, error)

// system draws from the operating system.
var system chance = rand.Read

// id draws an id of a report, a bundle or a request.
func (c chance) id() (id [16]byte) {
	_, _ = c(id[:])
	return id
}

// seed draws the seed of an order.
func (c chance) seed() (seed [32]byte) {
	_, _ = c(seed[:])
	return seed
}

// uint32 draws a number of 32 bits.
func (c chance) uint32() uint32 {
	var b [4]byte
	_, _ = c(b[:])
	return binary.BigEndian.Uint32(b[:])
}

// within draws a time from 0 to below d.
func (c chance) within(d time.Duration) time.Duration {
	var b [8]byte
	_, _ = c(b[:])
	high, _ := bits.Mul64(binary.BigEndian.Uint64(b[:]), uint64(max(d, 1)))
	return time.Duration(high)
}

// around draws a time whose mean is d, so that devices that wait for the same thing do not come together.
func (c chance) around(d time.Duration) time.Duration { return d/2 + c.within(d) }
