package split

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// turboShake128 is RFC 9861's TurboSHAKE128 with domain byte 1, of which Prio3's generator is made. circl keeps its own
// to itself, and a hostile device computes what it likes.
func turboShake128(message []byte, length int) []byte {
	const rate = 168
	padded := append(append([]byte{}, message...), 1)
	for len(padded)%rate != 0 {
		padded = append(padded, 0)
	}
	padded[len(padded)-1] ^= 0x80
	var a [25]uint64
	for ; len(padded) > 0; padded = padded[rate:] {
		for i := range rate / 8 {
			a[i] ^= binary.LittleEndian.Uint64(padded[8*i:])
		}
		keccak12(&a)
	}
	var out []byte
	for {
		for i := range rate / 8 {
			out = binary.LittleEndian.AppendUint64(out, a[i])
		}
		if len(out) >= length {
			return out[:length]
		}
		keccak12(&a)
	}
}

// keccak12 is Keccak-p[1600, 12]: the last 12 rounds of FIPS 202's permutation.
func keccak12(a *[25]uint64) {
	constants := [12]uint64{0x8000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002,
		0x8000000000000080, 0x800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x80000001,
		0x8000000080008008}
	for _, constant := range constants {
		var c [5]uint64
		for x := range 5 {
			c[x] = a[x] ^ a[x+5] ^ a[x+10] ^ a[x+15] ^ a[x+20]
		}
		for x := range 5 {
			d := c[(x+4)%5] ^ bits.RotateLeft64(c[(x+1)%5], 1)
			for y := 0; y < 25; y += 5 {
				a[x+y] ^= d
			}
		}
		x, y, moved := 1, 0, a[1]
		for t := range 24 {
			x, y = y, (2*x+3*y)%5
			moved, a[x+5*y] = a[x+5*y], bits.RotateLeft64(moved, (t+1)*(t+2)/2%64)
		}
		for y := 0; y < 25; y += 5 {
			row := [5]uint64(a[y : y+5])
			for x := range 5 {
				a[x+y] = row[x] ^ ^row[(x+1)%5]&row[(x+2)%5]
			}
		}
		a[0] ^= constant
	}
}

// jointPart returns the leader's half of a public share, as Prio3 has it for a blind, an id and an encoded share of the
// measurement (draft-irtf-cfrg-vdaf-14, section 7.2.1.2, usage 7).
func jointPart(context Hash, blind, id, measurement []byte) []byte {
	header := binary.LittleEndian.AppendUint16(nil, uint16(8+len(context)))
	header = append(header, 12, 0)      // version, class
	header = append(header, 0, 0, 0, 3) // Prio3SumVec
	header = append(header, 0, 7)       // joint randomness part
	header = append(append(header, context[:]...), seedBytes)
	message := append(append(header, blind...), leader)
	return turboShake128(append(append(message, id...), measurement...), seedBytes)
}

// The generator here is Prio3's: it makes the leader's half of an honest public share.
func TestJointPartIsPrio3s(t *testing.T) {
	w := newWorld(t, config(3, 2, 4), 5)
	u, s := w.shard(w.counts())
	n := 3 * 2 * elementBytes
	got := jointPart(w.cfg.Context, s.Leader[len(s.Leader)-seedBytes:], u.ID[:], s.Leader[:n])
	if string(got) != string(s.Public[:seedBytes]) {
		t.Errorf("made %x, want %x", got, s.Public[:seedBytes])
	}
}
