package parquet

import (
	"encoding/binary"
	"errors"
)

var errDelta = errors.New("not a block of differences")

// deltaInts reads DELTA_BINARY_PACKED: blocks of differences to the value before.
type deltaInts struct {
	in       []byte
	per      uint64 // values of a miniblock
	widths   []byte // of the miniblocks of this block that have not begun
	minis    int    // miniblocks of a block
	left     uint64 // values that have not been read
	first    bool   // the next value is the one in the header
	last     uint64
	smallest uint64 // difference that is added to all of a block
	packed   []byte
	width    uint
	at, mini uint64 // bit of packed; values left of the miniblock
}

// newDeltaInts reads the header. most bounds the number of values.
func newDeltaInts(in []byte, most uint64) (*deltaInts, error) {
	d := &deltaInts{in: in, first: true}
	block, err := d.uvarint()
	if err != nil {
		return nil, err
	}
	minis, err := d.uvarint()
	if err != nil {
		return nil, err
	}
	if d.left, err = d.uvarint(); err != nil {
		return nil, err
	}
	if d.last, err = d.varint(); err != nil {
		return nil, err
	}
	if block == 0 || block > 1<<20 || block%128 != 0 || minis == 0 || block%minis != 0 || block/minis%32 != 0 {
		return nil, errDelta
	}
	if d.left > most {
		return nil, errSize
	}
	d.minis, d.per = int(minis), block/minis
	return d, nil
}

func (d *deltaInts) uvarint() (uint64, error) {
	v, n := binary.Uvarint(d.in)
	if n <= 0 {
		return 0, errShort
	}
	d.in = d.in[n:]
	return v, nil
}

func (d *deltaInts) varint() (uint64, error) {
	v, err := d.uvarint()
	return v>>1 ^ -(v & 1), err
}

// next wraps around as the format wants.
func (d *deltaInts) next() (value, error) {
	if d.left == 0 {
		return value{}, errShort
	}
	d.left--
	if d.first {
		d.first = false
		return value{bits: d.last}, nil
	}
	if d.mini == 0 {
		if err := d.miniblock(); err != nil {
			return value{}, err
		}
	}
	d.mini--
	if d.at+uint64(d.width) > uint64(len(d.packed))*8 {
		return value{}, errShort
	}
	d.last += d.smallest + take(d.packed, d.at, d.width)
	d.at += uint64(d.width)
	return value{bits: d.last}, nil
}

func (d *deltaInts) miniblock() error {
	if len(d.widths) == 0 {
		var err error
		if d.smallest, err = d.varint(); err != nil {
			return err
		}
		if len(d.in) < d.minis {
			return errShort
		}
		d.widths, d.in = d.in[:d.minis], d.in[d.minis:]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return errDelta
	}
	n := min(d.per*uint64(d.width)/8, uint64(len(d.in)))
	d.packed, d.in = d.in[:n:n], d.in[n:]
	d.at, d.mini = 0, d.per
	return nil
}

// all reads every value, as lengths of at most the page's.
func (d *deltaInts) all(page int) ([]int32, error) {
	out := make([]int32, 0, min(d.left, 1<<16))
	for d.left > 0 {
		v, err := d.next()
		if err != nil {
			return nil, err
		}
		if v.bits > uint64(page) {
			return nil, errSize
		}
		out = append(out, int32(v.bits))
	}
	return out, nil
}

// deltaLengths reads DELTA_LENGTH_BYTE_ARRAY: all lengths, then all strings.
type deltaLengths struct {
	lengths []int32
	in      []byte
}

func newDeltaLengths(in []byte, most uint64) (*deltaLengths, error) {
	ints, err := newDeltaInts(in, most)
	if err != nil {
		return nil, err
	}
	lengths, err := ints.all(len(in))
	if err != nil {
		return nil, err
	}
	return &deltaLengths{lengths, ints.in}, nil
}

func (d *deltaLengths) next() (value, error) {
	if len(d.lengths) == 0 || int(d.lengths[0]) > len(d.in) {
		return value{}, errShort
	}
	n := d.lengths[0]
	v := d.in[:n]
	d.lengths, d.in = d.lengths[1:], d.in[n:]
	return value{bytes: v}, nil
}

// deltaBytes reads DELTA_BYTE_ARRAY: how much of the string before is kept, and what comes after it.
type deltaBytes struct {
	prefixes []int32
	suffixes *deltaLengths
	last     []byte
}

func newDeltaBytes(in []byte, most uint64) (*deltaBytes, error) {
	ints, err := newDeltaInts(in, most)
	if err != nil {
		return nil, err
	}
	prefixes, err := ints.all(len(in))
	if err != nil {
		return nil, err
	}
	suffixes, err := newDeltaLengths(ints.in, most)
	if err != nil {
		return nil, err
	}
	return &deltaBytes{prefixes: prefixes, suffixes: suffixes}, nil
}

func (d *deltaBytes) next() (value, error) {
	suffix, err := d.suffixes.next()
	if err != nil {
		return value{}, err
	}
	if len(d.prefixes) == 0 || int(d.prefixes[0]) > len(d.last) {
		return value{}, errShort
	}
	d.last = append(d.last[:d.prefixes[0]], suffix.bytes...)
	d.prefixes = d.prefixes[1:]
	return value{bytes: d.last}, nil
}
