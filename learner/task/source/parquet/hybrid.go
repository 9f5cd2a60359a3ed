package parquet

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("the page ends before its values")

// take reads width bits, at most 64, from bit number at, least significant first. The caller has checked the bounds.
func take(data []byte, at uint64, width uint) uint64 {
	var v uint64
	for got := uint(0); got < width; {
		b := uint64(data[at/8]) >> (at % 8)
		n := min(8-uint(at%8), width-got)
		v |= b & (1<<n - 1) << got
		got, at = got+n, at+uint64(n)
	}
	return v
}

// hybrid reads runs of equal values and groups of eight bit-packed ones: levels, indices of a dictionary, booleans.
// A run is never written out, so its length costs nothing.
type hybrid struct {
	in     []byte
	width  uint
	run    uint64 // values left of this run
	packed []byte // bits of this run; nil: all are value
	at     uint64 // bit of packed
	value  uint64
}

func (h *hybrid) next() (uint64, error) {
	for h.run == 0 {
		head, n := binary.Uvarint(h.in)
		if n <= 0 {
			return 0, errShort
		}
		h.in = h.in[n:]
		h.run, h.packed = head>>1, nil
		if head&1 == 0 {
			bytes := int(h.width+7) / 8
			if len(h.in) < bytes {
				return 0, errShort
			}
			h.value = take(h.in, 0, uint(bytes)*8)
			h.in = h.in[bytes:]
			continue
		}
		if h.run > 1<<32 {
			return 0, errSize
		}
		bytes := min(h.run*uint64(h.width), uint64(len(h.in))) // writers may cut the last group
		h.run, h.packed, h.at = h.run*8, h.in[:bytes:bytes], 0
		h.in = h.in[bytes:]
	}
	h.run--
	if h.packed == nil {
		return h.value, nil
	}
	if h.at+uint64(h.width) > uint64(len(h.packed))*8 {
		return 0, errShort
	}
	v := take(h.packed, h.at, h.width)
	h.at += uint64(h.width)
	return v, nil
}
