package randomizer

import (
	"encoding/binary"
	"fmt"
)

// An Adder checks packed reports and adds up their counts, and stores single counts nowhere. The shuffle stage uses it
// on the outputs of Pack. Its methods do not change it.
//
// A group is as many counts as lie in one word of 64 bits, wherever in its first byte they begin. Every other count of
// a group has as many zeros above it, once its neighbours are masked out, as it has bits: counts are compared, and and
// added over many reports, several at a time; sums are split up before these fields can overflow.
type Adder struct {
	dim, width, size int // coordinates; bits of a count; bytes of a report
	most             uint64
	group            int    // counts in a group: 8, 4, 2 or 1
	evens            uint64 // the first count of a group, the third and so on
	odds             uint64 // those between, moved down by one count
	lift             uint64 // what carries counts above most, and no others, into the bit above them
	carries          uint64 // those bits
	stack            int    // bytes of as many reports as fields can add up
	reach            reach
	together         int // coordinates of one device's report
}

// NewAdder returns the adder for valid parameters. sideBySide is the number of devices whose reports lie side by side
// in one report, each in an equal number of coordinates: 1, except in an audit.
func NewAdder(p Params, sideBySide int) *Adder {
	a := &Adder{dim: p.Dim, width: p.countBits(), size: p.ReportBytes(), most: uint64(p.MaxCount()), group: 8,
		reach: reachOf(p), together: p.Dim / sideBySide}
	for a.group*a.width+8-a.group > 64 { // a group begins at a bit that is a multiple of its counts
		a.group /= 2
	}
	count := uint64(1)<<a.width - 1
	for j := 0; j < a.group; j += 2 {
		at := j * a.width
		a.evens |= count << at
		a.lift |= (count - a.most) << at
		a.carries |= 1 << (at + a.width)
	}
	if a.group > 1 {
		a.odds = a.evens
	}
	a.stack = a.size << a.width // 2^w counts below 2^w add up to less than 2^2w
	return a
}

// ReportBytes returns the length of a packed report.
func (a *Adder) ReportBytes() int { return a.size }

// ValidateReport returns nil if data is one or more packed reports, one after the other. It accepts every output of
// Pack that a device can have drawn; no device draws a report that it refuses, for any vector and coins. The error
// wraps errReportLength or errReportRange, and never holds a count.
func (a *Adder) ValidateReport(data []byte) error {
	if len(data) == 0 || len(data)%a.size != 0 {
		return fmt.Errorf("check %d bytes, want reports of %d: %w", len(data), a.size, errReportLength)
	}
	if a.bad(data) || a.outOfReach(data) {
		return fmt.Errorf("check: %w", errReportRange)
	}
	return nil
}

// bad reports whether in one of the reports a count is above the largest allowed, or a bit behind the last count is
// set.
func (a *Adder) bad(data []byte) bool {
	evens, odds, lift, width, step := a.evens, a.odds, a.lift, uint(a.width)&63, a.group*a.width
	var carried uint64
	var padding byte
	end := a.dim * a.width % 8
	for ; len(data) > 0; data = data[a.size:] {
		at, left := 0, a.dim
		for ; left >= a.group && at>>3+8 <= len(data); left -= a.group {
			word := binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7)
			carried |= (word&evens + lift) | (word>>width&odds + lift)
			at += step
		}
		for ; left > 0; left -= a.group {
			word := lastWord(data[at>>3:a.size]) >> (at & 7)
			carried |= (word&evens + lift) | (word>>width&odds + lift)
			at += step
		}
		if end != 0 {
			padding |= data[a.size-1] >> end
		}
	}
	return carried&a.carries != 0 || padding != 0
}

// Add adds the counts of reports that ValidateReport accepts to sums, one for each coordinate. The caller must ensure
// that no sum overflows.
//
// Add panics if the number of sums differs from the number of coordinates, or if data is not whole reports. For
// unchecked reports the sums are meaningless.
func (a *Adder) Add(sums []uint64, data []byte) {
	if len(sums) != a.dim || len(data)%a.size != 0 {
		panic(fmt.Sprintf("randomizer: Add of %d bytes to %d sums, want reports of %d to %d", len(data), len(sums), a.size,
			a.dim))
	}
	switch {
	case len(data) == a.size && a.group == 8:
		a.addNarrow(sums, data)
	case len(data) == a.size:
		a.addWide(sums, data)
	default:
		for ; len(data) > a.stack; data = data[a.stack:] {
			a.addStack(sums, data[:a.stack])
		}
		a.addStack(sums, data)
	}
}

// addStack adds reports that are at most a stack.
func (a *Adder) addStack(sums []uint64, data []byte) {
	twice := 2 * uint(a.width)
	field := uint64(1)<<twice - 1
	for at := 0; len(sums) > 0; at += a.group * a.width {
		even, odd := a.column(data[at>>3:], at&7)
		group := sums[:min(a.group, len(sums))]
		for j := range group {
			if j%2 == 0 {
				group[j] += even & field
				even >>= twice
			} else {
				group[j] += odd & field
				odd >>= twice
			}
		}
		sums = sums[len(group):]
	}
}

// column adds up one group over all reports, field by field: at bit shift of data, and every size bytes after it. Bits
// of a word after the group are masked out; after the last counts of a smaller group they add up in unused fields.
func (a *Adder) column(data []byte, shift int) (even, odd uint64) {
	evens, odds, width, begin, at := a.evens, a.odds, uint(a.width)&63, uint(shift)&7, 0
	for ; at+8 <= len(data); at += a.size {
		word := binary.LittleEndian.Uint64(data[at:]) >> begin
		even += word & evens
		odd += word >> width & odds
	}
	for ; at < len(data); at += a.size {
		word := lastWord(data[at:]) >> begin
		even += word & evens
		odd += word >> width & odds
	}
	return even, odd
}

// lastWord reads up to seven bytes as if zeros followed them.
func lastWord(data []byte) (word uint64) {
	for i, b := range data[:min(len(data), 7)] {
		word |= uint64(b) << (8 * i)
	}
	return word
}

// addNarrow adds one report whose groups are of eight counts: width bytes.
func (a *Adder) addNarrow(sums []uint64, data []byte) {
	width := uint(a.width) & 63
	count := uint64(1)<<width - 1
	for len(sums) >= 8 && len(data) >= 8 {
		word := binary.LittleEndian.Uint64(data)
		group := (*[8]uint64)(sums)
		group[0] += word & count
		word >>= width
		group[1] += word & count
		word >>= width
		group[2] += word & count
		word >>= width
		group[3] += word & count
		word >>= width
		group[4] += word & count
		word >>= width
		group[5] += word & count
		word >>= width
		group[6] += word & count
		word >>= width
		group[7] += word & count
		sums, data = sums[8:], data[a.width:]
	}
	word := lastWord(data)
	for j := range sums {
		sums[j] += word & count
		word >>= width
	}
}

// addWide adds one report of counts of up to 32 bits: one, and the bits before it in its first byte, are at most 39.
func (a *Adder) addWide(sums []uint64, data []byte) {
	width := a.width
	mask, at, j := uint64(1)<<width-1, 0, 0
	for ; j < len(sums) && at>>3+8 <= len(data); j++ {
		sums[j] += binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7) & mask
		at += width
	}
	for ; j < len(sums); j++ {
		sums[j] += lastWord(data[at>>3:]) >> (at & 7) & mask
		at += width
	}
}
