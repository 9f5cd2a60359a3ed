package parquet

import (
	"encoding/binary"
)

// A decoder yields the values of a page that are not null.
type decoder interface {
	next() (value, error)
}

// plainFixed reads numbers of 4 or 8 bytes, little-endian.
type plainFixed struct {
	in    []byte
	width int
}

func (d *plainFixed) next() (value, error) {
	if len(d.in) < d.width {
		return value{}, errShort
	}
	v := take(d.in, 0, uint(d.width)*8)
	d.in = d.in[d.width:]
	return value{bits: v}, nil
}

// plainBytes reads strings, each after its length in 4 bytes.
type plainBytes struct{ in []byte }

func (d *plainBytes) next() (value, error) {
	if len(d.in) < 4 {
		return value{}, errShort
	}
	n := binary.LittleEndian.Uint32(d.in)
	if uint64(n) > uint64(len(d.in)-4) {
		return value{}, errShort
	}
	v := d.in[4 : 4+n]
	d.in = d.in[4+n:]
	return value{bytes: v}, nil
}

// plainBits reads booleans of one bit.
type plainBits struct {
	in []byte
	at uint64
}

func (d *plainBits) next() (value, error) {
	if d.at >= uint64(len(d.in))*8 {
		return value{}, errShort
	}
	v := take(d.in, d.at, 1)
	d.at++
	return value{bits: v}, nil
}

// runBits reads booleans of the encoding RLE.
type runBits struct{ runs hybrid }

func (d *runBits) next() (value, error) {
	v, err := d.runs.next()
	return value{bits: v}, err
}

// splitBytes reads BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
type splitBytes struct {
	in        []byte
	width, at int
}

func (d *splitBytes) next() (value, error) {
	n := len(d.in) / d.width
	if d.at >= n {
		return value{}, errShort
	}
	var v uint64
	for k := range d.width {
		v |= uint64(d.in[k*n+d.at]) << (8 * k)
	}
	d.at++
	return value{bits: v}, nil
}
