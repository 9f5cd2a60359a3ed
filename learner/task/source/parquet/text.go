package parquet

import (
	"math"
	"strconv"
)

// A value is what a decoder yields: bits of a number, or bytes that are valid until the next value.
type value struct {
	bits  uint64
	bytes []byte
}

// text is the value as a csv file would have it. Numbers come back from it exactly.
func (c *column) text(v value) string {
	switch c.physical {
	case boolean:
		if c.read == Number {
			return strconv.FormatUint(v.bits&1, 10)
		}
		return strconv.FormatBool(v.bits&1 != 0)
	case integer32:
		if c.meaning == unsigned {
			return strconv.FormatUint(uint64(uint32(v.bits)), 10)
		}
		return c.scaled(int64(int32(v.bits)))
	case integer64:
		if c.meaning == unsigned {
			return strconv.FormatUint(v.bits, 10)
		}
		return c.scaled(int64(v.bits))
	case float:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.bits))), 'g', -1, 64)
	case double:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	}
	return string(v.bytes)
}

// scaled writes an integer, or the decimal that it stands for.
func (c *column) scaled(v int64) string {
	s := strconv.FormatInt(v, 10)
	if c.meaning == decimal && c.scale > 0 {
		s += "e-" + strconv.Itoa(int(c.scale))
	}
	return s
}

// width is the number of bytes of a value in the plain encoding, 0 where they differ.
func (c *column) width() int {
	switch c.physical {
	case integer32, float:
		return 4
	case integer64, double:
		return 8
	}
	return 0
}
