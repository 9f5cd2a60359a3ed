package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// compact reads Thrift's compact protocol, in which footers and page headers are written. Its first error sticks, and
// everything after it reads as zero.
type compact struct {
	in   *bufio.Reader
	left int64 // bytes that may still be read: no list or string is longer
	err  error
}

// The types of fields and of items of a list. In a list a truth value takes one byte; in a field it is the type itself.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeI8     = 3
	typeI16    = 4
	typeI32    = 5
	typeI64    = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
	typeUUID   = 13
)

const mostNested = 16 // deeper than any structure of the format

var (
	errThrift = errors.New("not a structure of the format")
	errSize   = errors.New("a size is larger than what can hold it")
)

func (c *compact) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *compact) byte() byte {
	if c.err != nil {
		return 0
	}
	if c.left <= 0 {
		c.fail(errSize)
		return 0
	}
	b, err := c.in.ReadByte()
	if err != nil {
		c.fail(noEOF(err))
		return 0
	}
	c.left--
	return b
}

// ReadByte lets binary.ReadUvarint read.
func (c *compact) ReadByte() (byte, error) {
	b := c.byte()
	return b, c.err
}

func (c *compact) uvarint() uint64 {
	v, err := binary.ReadUvarint(c)
	if err != nil {
		c.fail(noEOF(err))
		return 0
	}
	return v
}

func (c *compact) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// size reads a length that is counted in things of at least one byte.
func (c *compact) size() int64 {
	n := c.uvarint()
	if n > uint64(max(c.left, 0)) {
		c.fail(errSize)
		return 0
	}
	return int64(n)
}

func (c *compact) discard(n int64) {
	if c.err != nil {
		return
	}
	if n > c.left {
		c.fail(errSize)
		return
	}
	c.left -= n
	if _, err := io.CopyN(io.Discard, c.in, n); err != nil {
		c.fail(noEOF(err))
	}
}

// text reads a string field.
func (c *compact) text(kind byte) string {
	if kind != typeBinary {
		c.fail(errThrift)
	}
	n := c.size()
	if c.err != nil {
		return ""
	}
	b := make([]byte, n)
	c.left -= n
	if _, err := io.ReadFull(c.in, b); err != nil {
		c.fail(noEOF(err))
		return ""
	}
	return string(b)
}

// integer reads a field of any integer type.
func (c *compact) integer(kind byte) int64 {
	switch kind {
	case typeI8:
		return int64(int8(c.byte()))
	case typeI16, typeI32, typeI64:
		return c.varint()
	}
	c.fail(errThrift)
	return 0
}

// int32 is an integer that the format declares as 32 bits.
func (c *compact) int32(kind byte) int32 {
	v := c.integer(kind)
	if v < math.MinInt32 || v > math.MaxInt32 {
		c.fail(errThrift)
		return 0
	}
	return int32(v)
}

// bool reads a truth value of a field.
func (c *compact) bool(kind byte) bool {
	if kind != typeTrue && kind != typeFalse {
		c.fail(errThrift)
	}
	return kind == typeTrue
}

// fields calls each for every field of a structure; each reads the value or skips it.
func (c *compact) fields(kind byte, each func(id int16, kind byte)) {
	if kind != typeStruct {
		c.fail(errThrift)
	}
	id := int16(0)
	for c.err == nil {
		head := c.byte()
		if head == 0 {
			return
		}
		if step := head >> 4; step != 0 {
			id += int16(step)
		} else {
			id = int16(c.varint())
		}
		each(id, head&15)
	}
}

// items calls each for every item of a list; each reads the item or skips it.
func (c *compact) items(kind byte, each func(i int64, kind byte)) {
	if kind != typeList && kind != typeSet {
		c.fail(errThrift)
	}
	head := c.byte()
	n := int64(head >> 4)
	if n == 15 {
		n = c.size()
	}
	for i := int64(0); i < n && c.err == nil; i++ {
		each(i, head&15)
	}
}

// skip passes over a field.
func (c *compact) skip(kind byte) {
	if kind != typeTrue && kind != typeFalse {
		c.skipItem(kind, 0)
	}
}

// skipItem passes over an item of a list, or a field that has bytes of its own.
func (c *compact) skipItem(kind byte, depth int) {
	if depth == mostNested {
		c.fail(errThrift)
	}
	switch kind {
	case typeTrue, typeFalse, typeI8:
		c.byte()
	case typeI16, typeI32, typeI64:
		c.uvarint()
	case typeDouble:
		c.discard(8)
	case typeUUID:
		c.discard(16)
	case typeBinary:
		c.discard(c.size())
	case typeList, typeSet:
		c.items(kind, func(_ int64, kind byte) { c.skipItem(kind, depth+1) })
	case typeMap:
		n := c.size()
		if n == 0 {
			return
		}
		kinds := c.byte()
		for i := int64(0); i < n && c.err == nil; i++ {
			c.skipItem(kinds>>4, depth+1)
			c.skipItem(kinds&15, depth+1)
		}
	case typeStruct:
		c.fields(kind, func(_ int16, kind byte) {
			if kind != typeTrue && kind != typeFalse {
				c.skipItem(kind, depth+1)
			}
		})
	default:
		c.fail(errThrift)
	}
}

// noEOF turns the end of data that should have gone on into an error that is not io.EOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
