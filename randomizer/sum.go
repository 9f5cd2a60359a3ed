package randomizer

import (
	"encoding/binary"
	"fmt"
)

// An Adder checks packed reports and adds their counts up, and writes the counts down nowhere else. It is what a shuffle stage does
// with the outputs of Pack. Its methods do not change it.
//
// Narrow counts have up to 8 bits: eight of them are a group, of width bytes, and lie in one word. Every other count of a
// group has as many zeros above it, once its neighbours are masked out, as it has bits: counts are compared and added four at a time, and
// taken apart when the fields could overflow.
type Adder struct {
	dim, width, size int // coordinates; bits of a count; bytes of a report
	most             uint64

	// Of narrow counts:
	fields  uint64 // every other count of a group
	lift    uint64 // what carries counts above most, and no others, into the bit above their field
	carries uint64 // those bits
	rest    uint64 // the counts of a last group that has fewer than eight
	padding uint64 // the bits behind them, up to the end of their byte
	stack   int    // bytes of as many reports as fields can add up
}

// NewAdder prepares the adder of valid parameters.
func NewAdder(p Params) *Adder {
	a := &Adder{dim: p.Dim, width: p.CountBits(), size: p.ReportBytes(), most: uint64(p.MaxCount())}
	if a.width > 8 {
		return a
	}
	count := uint64(1)<<a.width - 1
	for at := 0; at < 8*a.width; at += 2 * a.width {
		a.fields |= count << at
		a.lift |= (count - a.most) << at
		a.carries |= 1 << (at + a.width)
	}
	used := p.Dim % 8 * a.width
	a.rest = 1<<used - 1
	a.padding = 1<<((used+7)/8*8) - 1 - a.rest
	a.stack = a.size << a.width // 2^w counts below 2^w add up to less than 2^2w
	return a
}

// ReportBytes is the length of a packed report.
func (a *Adder) ReportBytes() int { return a.size }

// Check says whether data is packed reports, one or more, one after the other: it accepts exactly the outputs of Pack. The error
// wraps ErrReportLength or ErrReportRange, and never holds a count.
func (a *Adder) Check(data []byte) error {
	if len(data) == 0 || len(data)%a.size != 0 {
		return fmt.Errorf("check %d bytes, want reports of %d: %w", len(data), a.size, ErrReportLength)
	}
	if a.width <= 8 {
		if a.narrowBad(data) {
			return fmt.Errorf("check: %w", ErrReportRange)
		}
		return nil
	}
	for ; len(data) > 0; data = data[a.size:] {
		if a.wideBad(data[:a.size]) {
			return fmt.Errorf("check: %w", ErrReportRange)
		}
	}
	return nil
}

// Add adds the counts of reports that Check accepts to sums, one for each coordinate. The caller sees to it that no sum
// overflows.
//
// Add panics if the number of sums is not that of coordinates, or the bytes are no whole reports. Of reports that were not
// checked it adds what means nothing.
func (a *Adder) Add(sums []uint64, data []byte) {
	if len(sums) != a.dim || len(data)%a.size != 0 {
		panic(fmt.Sprintf("randomizer: Add of %d bytes to %d sums, want reports of %d to %d", len(data), len(sums), a.size, a.dim))
	}
	switch {
	case a.width <= 8 && len(data) == a.size:
		a.addOne(sums, data)
		return
	case a.width <= 8:
		for ; len(data) > a.stack; data = data[a.stack:] {
			a.addStack(sums, data[:a.stack])
		}
		a.addStack(sums, data)
		return
	}
	for ; len(data) > 0; data = data[a.size:] {
		a.addWide(sums, data[:a.size])
	}
}

// narrowBad says whether a count is above most, or a bit of padding set, in one of the reports.
func (a *Adder) narrowBad(data []byte) bool {
	fields, lift, shift := a.fields, a.lift, uint(a.width)&63
	var carried, padding uint64
	for begin := 0; begin < len(data); begin += a.size {
		at, left := begin, a.dim
		for ; left >= 8 && at+8 <= len(data); left -= 8 {
			word := binary.LittleEndian.Uint64(data[at:])
			carried |= (word&fields + lift) | (word>>shift&fields + lift)
			at += a.width
		}
		for ; left >= 8; left -= 8 {
			word := lastWord(data[at:])
			carried |= (word&fields + lift) | (word>>shift&fields + lift)
			at += a.width
		}
		if left > 0 {
			word := lastWord(data[at : begin+a.size])
			padding |= word & a.padding
			word &= a.rest
			carried |= (word&fields + lift) | (word>>shift&fields + lift)
		}
	}
	return carried&a.carries|padding != 0
}

// addOne adds one report of narrow counts: there is nothing to add up first.
func (a *Adder) addOne(sums []uint64, data []byte) {
	shift := uint(a.width) & 63
	count := uint64(1)<<shift - 1
	for len(sums) >= 8 && len(data) >= 8 {
		word := binary.LittleEndian.Uint64(data)
		group := (*[8]uint64)(sums)
		group[0] += word & count
		word >>= shift
		group[1] += word & count
		word >>= shift
		group[2] += word & count
		word >>= shift
		group[3] += word & count
		word >>= shift
		group[4] += word & count
		word >>= shift
		group[5] += word & count
		word >>= shift
		group[6] += word & count
		word >>= shift
		group[7] += word & count
		sums, data = sums[8:], data[a.width:]
	}
	word := lastWord(data)
	for j := range sums {
		sums[j] += word & count
		word >>= shift
	}
}

// addStack adds reports of narrow counts that are at most a stack.
func (a *Adder) addStack(sums []uint64, data []byte) {
	twice := 2 * uint(a.width) & 63
	for ; len(sums) >= 8; sums, data = sums[8:], data[a.width:] {
		even, odd := a.column(data)
		spread((*[8]uint64)(sums), even, odd, twice)
	}
	if len(sums) > 0 {
		var last [8]uint64
		even, odd := a.column(data)
		spread(&last, even, odd, twice)
		for j := range sums {
			sums[j] += last[j]
		}
	}
}

// column adds up a group of all reports, field by field: that at the beginning of data, and size bytes on the next. What a word
// holds behind a group of eight is masked out; behind a group of fewer it adds up in fields that nobody reads.
func (a *Adder) column(data []byte) (even, odd uint64) {
	fields, shift, at := a.fields, uint(a.width)&63, 0
	for ; at+8 <= len(data); at += a.size {
		word := binary.LittleEndian.Uint64(data[at:])
		even += word & fields
		odd += word >> shift & fields
	}
	for ; at < len(data); at += a.size {
		word := lastWord(data[at:])
		even += word & fields
		odd += word >> shift & fields
	}
	return even, odd
}

// spread adds the fields, each twice as wide as a count, to the sums of a group.
func spread(group *[8]uint64, even, odd uint64, twice uint) {
	field := uint64(1)<<twice - 1
	group[0] += even & field
	group[1] += odd & field
	even >>= twice & 63
	odd >>= twice & 63
	group[2] += even & field
	group[3] += odd & field
	even >>= twice & 63
	odd >>= twice & 63
	group[4] += even & field
	group[5] += odd & field
	even >>= twice & 63
	odd >>= twice & 63
	group[6] += even & field
	group[7] += odd & field
}

// lastWord reads up to seven bytes as if zeros followed them.
func lastWord(data []byte) (word uint64) {
	for i, b := range data[:min(len(data), 7)] {
		word |= uint64(b) << (8 * i)
	}
	return word
}

// Wide counts have up to 32 bits: one, and the bits before it in its first byte, are at most 39.

func (a *Adder) wideBad(data []byte) bool {
	width, most, n := a.width, a.most, a.dim
	if used := n * width % 8; used != 0 && data[len(data)-1]>>used != 0 {
		return true
	}
	mask, at := uint64(1)<<width-1, 0
	var over uint64 // the highest bit is set where a count was above most
	for ; n > 0 && at>>3+8 <= len(data); n-- {
		over |= most - binary.LittleEndian.Uint64(data[at>>3:])>>(at&7)&mask
		at += width
	}
	last := behind(data, at)
	for at &= 7; n > 0; n-- {
		over |= most - binary.LittleEndian.Uint64(last[at>>3:])>>(at&7)&mask
		at += width
	}
	return over>>63 != 0
}

func (a *Adder) addWide(sums []uint64, data []byte) {
	width := a.width
	mask, at, j := uint64(1)<<width-1, 0, 0
	for ; j < len(sums) && at>>3+8 <= len(data); j++ {
		sums[j] += binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7) & mask
		at += width
	}
	last := behind(data, at)
	for at &= 7; j < len(sums); j++ {
		sums[j] += binary.LittleEndian.Uint64(last[at>>3:]) >> (at & 7) & mask
		at += width
	}
}

// behind is fewer than eight bytes from that of bit at on, and zeros.
func behind(data []byte, at int) (last [16]byte) {
	copy(last[:], data[at>>3:])
	return last
}
