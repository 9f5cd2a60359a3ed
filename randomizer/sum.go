package randomizer

import (
	"encoding/binary"
	"fmt"
)

// CheckPacked says whether a packed report is one: it accepts exactly the outputs of Pack. The error wraps
// ErrReportLength or ErrReportRange, and never holds a count.
func (p *Params) CheckPacked(data []byte) error {
	width := p.CountBits()
	if len(data) != (p.Dim*width+7)/8 {
		return fmt.Errorf("check %d bytes, want %d: %w", len(data), p.ReportBytes(), ErrReportLength)
	}
	used := p.Dim * width % 8
	padded := used != 0 && data[len(data)-1]>>used != 0
	var over bool
	if width <= 8 {
		over = narrowOver(data, p.Dim, width, uint64(p.MaxCount()))
	} else {
		over = wideOver(data, p.Dim, width, uint64(p.MaxCount()))
	}
	if padded || over {
		return fmt.Errorf("check: %w", ErrReportRange)
	}
	return nil
}

// AddPacked adds the counts of a report that CheckPacked accepts to sums, one for each coordinate, and writes them down
// nowhere else. The caller sees to it that no sum overflows.
//
// AddPacked panics if the number of sums or of bytes is not that of the parameters. Of a report that was not checked it
// adds what means nothing.
func (p *Params) AddPacked(sums []uint64, data []byte) {
	width := p.CountBits()
	if len(sums) != p.Dim || len(data) != (p.Dim*width+7)/8 {
		panic(fmt.Sprintf("randomizer: AddPacked of %d bytes to %d sums, want %d and %d", len(data), len(sums), p.ReportBytes(), p.Dim))
	}
	if width <= 8 {
		addNarrow(sums, data, width)
	} else {
		addWide(sums, data, width)
	}
}

// Narrow counts have up to 8 bits: eight of them are width bytes, and lie in one word. Where fewer than eight are left, or
// fewer than eight bytes, all that is left lies in one word too.

// narrowOver looks at four counts at a time. Every other count is taken out of the word, which leaves as many zeros above
// each as it has bits; a number is added that makes counts above most, and no others, carry into them.
func narrowOver(data []byte, n, width int, most uint64) bool {
	var fields, carries, add uint64
	for at := 0; at < 8*width; at += 2 * width {
		fields |= (1<<width - 1) << at
		carries |= 1 << (at + width)
		add |= (1<<width - 1 - most) << at
	}
	shift := uint(width) & 63
	var carried uint64
	for ; n >= 8 && len(data) >= 8; n -= 8 {
		word := binary.LittleEndian.Uint64(data)
		carried |= (word&fields + add) | (word>>shift&fields + add)
		data = data[width:]
	}
	over := carried&carries != 0
	mask, word := uint64(1)<<width-1, lastWord(data)
	for range n {
		over = over || word&mask > most
		word >>= shift
	}
	return over
}

func addNarrow(sums []uint64, data []byte, width int) {
	mask, shift := uint64(1)<<width-1, uint(width)&63
	for len(sums) >= 8 && len(data) >= 8 {
		word := binary.LittleEndian.Uint64(data)
		group := (*[8]uint64)(sums)
		group[0] += word & mask
		word >>= shift
		group[1] += word & mask
		word >>= shift
		group[2] += word & mask
		word >>= shift
		group[3] += word & mask
		word >>= shift
		group[4] += word & mask
		word >>= shift
		group[5] += word & mask
		word >>= shift
		group[6] += word & mask
		word >>= shift
		group[7] += word & mask
		sums, data = sums[8:], data[width:]
	}
	word := lastWord(data)
	for j := range sums {
		sums[j] += word & mask
		word >>= shift
	}
}

// lastWord reads fewer than eight bytes as if zeros followed them.
func lastWord(data []byte) (word uint64) {
	for i, b := range data {
		word |= uint64(b) << (8 * i)
	}
	return word
}

// Wide counts have up to 32 bits: one, and the bits before it in its first byte, are at most 39.

func wideOver(data []byte, n, width int, most uint64) bool {
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

func addWide(sums []uint64, data []byte, width int) {
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
