package randomizer

import (
	"encoding/binary"
	"math"
)

// reach finds the reports that no device can have drawn although each of their counts is in range.
//
// The place of a report, before it is rounded, lies in the ball of radius g/2 around (g/2, ..., g/2). Rounding moves a
// coordinate by less than one level, and b trials move it by at most b/2 from their mean, so with s the place from the
// centre
//
//	|2 c_j - g - b| <= 2 |s_j| + b + 2,   and the sum of (2 s_j)^2 is at most g^2.
//
// What is left of |2 c_j - g - b| above b + 2, squared, adds up to at most g^2 in every report, whatever it is about
// and whatever its coins show. A report at the ends of all its ranges is refused: its norm would be as large as sqrt(d)
// honest ones.
type reach struct {
	middle, slack, most uint64 // g + b, b + 2, g^2
}

// narrow is the largest width of counts that are taken eight at a time; their squares do not overflow a sum.
const narrow = 8

// reachOf returns the reach of valid parameters. With a window no report is out of reach, for its trials are not
// known.
func reachOf(p Params) reach {
	if p.Window > 0 {
		return reach{most: math.MaxUint64}
	}
	g, b := uint64(p.Levels), uint64(p.Trials)
	return reach{middle: g + b, slack: b + 2, most: g * g}
}

// square returns the contribution of one count, of at most g + b, to the sum: less than g^2, at most 2^60.
func (r reach) square(count uint64) uint64 {
	off := int64(2*count) - int64(r.middle)
	left := uint64(max(max(off, -off)-int64(r.slack), 0)) // at most g - 2
	return left * left
}

// outOfReach reports whether the counts of one of the reports, each in range, together lie farther from the centre than
// any device's can.
func (a *Adder) outOfReach(data []byte) bool {
	if a.reach.most == math.MaxUint64 {
		return false
	}
	beyond := false
	for ; len(data) > 0; data = data[a.size:] {
		beyond = beyond || a.square(data[:a.size]) > a.reach.most
	}
	return beyond
}

// square returns the sum of squares of one report, or the largest sum among reports side by side.
func (a *Adder) square(data []byte) (most uint64) {
	width, left, sum := uint(a.width)&63, a.dim, uint64(0)
	mask := uint64(1)<<width - 1
	if r := a.reach; a.width <= narrow && a.together == a.dim {
		for ; left >= 8 && len(data) >= 8; left -= 8 { // counts take width bytes
			word := binary.LittleEndian.Uint64(data)
			for range 8 {
				sum += r.square(word & mask)
				word >>= width
			}
			data = data[width:]
		}
	}
	for at, inOne := 0, left; left > 0; left-- {
		if inOne == 0 || a.together < inOne {
			sum, inOne = 0, a.together
		}
		sum = min(sum+a.reach.square(wordAt(data[at>>3:])>>(at&7)&mask), 1<<62-1) // beyond the reach it stays there
		most = max(most, sum)
		at += a.width
		inOne--
	}
	return max(most, sum)
}

// wordAt reads eight bytes, or fewer as if zeros followed them.
func wordAt(data []byte) uint64 {
	if len(data) >= 8 {
		return binary.LittleEndian.Uint64(data)
	}
	return lastWord(data)
}
