package randomizer

import (
	"errors"
	"fmt"
)

// Errors of Unpack, which a stage counts separately.
var (
	// errReportLength means that a packed report does not have Params.ReportBytes bytes.
	errReportLength = errors.New("report has the wrong length")
	// errReportRange means that a count exceeds Params.MaxCount, or that a padding bit is set.
	errReportRange = errors.New("report has a count out of range")
)

// Pack appends the packed counts to dst. The layout is a string of bits: count j takes the bits j w to (j+1) w - 1,
// w = countBits, least significant bit first; bit i is bit i mod 8 of byte i/8; bits after the last count are zero.
//
// Pack panics unless counts came from Encode or Unpack with the same Params: a wrong number of counts or a count above
// MaxCount is a broken invariant of the caller.
func (p Params) Pack(dst []byte, counts []uint32) []byte {
	if len(counts) != p.Dim {
		panic(fmt.Sprintf("randomizer: Pack of %d counts for Dim = %d", len(counts), p.Dim))
	}
	width, most := p.countBits(), p.MaxCount()
	var acc uint64
	var have int
	for j, c := range counts {
		if c > most {
			panic(fmt.Sprintf("randomizer: Pack of a count above %d at coordinate %d", most, j))
		}
		acc |= uint64(c) << have
		have += width
		if have >= 32 {
			dst = append(dst, byte(acc), byte(acc>>8), byte(acc>>16), byte(acc>>24))
			acc >>= 32
			have -= 32
		}
	}
	for ; have > 0; have -= 8 {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// Unpack reads one packed report into dst, whose memory is reused if it is large enough, and returns its Dim counts.
// It accepts exactly the outputs of Pack: the error wraps errReportLength or errReportRange, and never holds a count.
func (p Params) Unpack(dst []uint32, data []byte) ([]uint32, error) {
	if len(data) != p.ReportBytes() {
		return nil, fmt.Errorf("unpack %d bytes, want %d: %w", len(data), p.ReportBytes(), errReportLength)
	}
	dst = resize(dst, p.Dim)
	width, most := p.countBits(), p.MaxCount()
	mask := uint64(1)<<width - 1
	var acc uint64
	var have int
	bad := false
	for j := range dst {
		if have < width {
			if len(data) >= 4 {
				acc |= (uint64(data[0]) | uint64(data[1])<<8 | uint64(data[2])<<16 | uint64(data[3])<<24) << have
				data = data[4:]
				have += 32
			} else {
				for _, c := range data {
					acc |= uint64(c) << have
					have += 8
				}
				data = nil
			}
		}
		c := uint32(acc & mask)
		acc >>= width
		have -= width
		bad = bad || c > most
		dst[j] = c
	}
	for _, c := range data {
		acc |= uint64(c)
	}
	if bad || acc != 0 {
		clear(dst)
		return nil, fmt.Errorf("unpack: %w", errReportRange)
	}
	return dst, nil
}

// resize returns n elements in the memory of s if they fit there. Contents are not kept.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
