package randomizer

import (
	"math"
	"math/bits"
)

// A ball places vectors on the lattice. Positions are measured from the centre (g/2, ..., g/2) in steps of 2^-24 of a
// level: since g 2^24 is even, the centre lies on that grid for odd g too. The radius is Params.unitRadius: g 2^23
// steps, which is g/2 levels, or a share of it for each unit of a report about several.
//
// The accountant's theorem needs positions inside the ball exactly. Clipping in floating point alone exceeds it by
// rounding errors, and snapping outwards by far more, so positions are snapped toward the centre and the sum of squares
// is compared in 128-bit integers.
type ball struct {
	clip   float64 // L
	radius uint64  // at most g 2^23 <= 2^53
}

func newBall(p Params) ball {
	return ball{clip: p.ClipNorm, radius: p.unitRadius()}
}

// snap writes the position of clip_L(x) to dst, which has the length of x. It reports false, and writes the centre,
// if x has a NaN or an infinity.
func (b ball) snap(dst []int64, x []float64) bool {
	if b.place(dst, x) {
		return true
	}
	norm, unit := norm2(x)
	if math.IsNaN(norm) {
		clear(dst)
		return false
	}
	// Positions are (x/unit) (radius/norm), or (x/unit) radius/L for vectors that need no clipping; unit is 1 for
	// every vector that does not.
	scale := float64(b.radius) / norm
	if unit == 1 && norm <= b.clip {
		scale = float64(b.radius) / b.clip
	}
	b.settle(dst, x, unit, scale)
	return true
}

// place is snap for a vector that needs no clipping and lies in the ball at once, in one pass: the sum of norm2, which
// waits for every addition, takes no longer than the positions. It reports false, and dst is to be overwritten, for
// any other vector.
func (b ball) place(dst []int64, x []float64) bool {
	var sum float64
	var hi, lo, carry uint64
	scale := float64(b.radius) / b.clip
	dst = dst[:len(x)]
	for j, v := range x {
		sum += float64(v * v)
		s := int64(v * scale)
		dst[j] = s
		a := uint64(max(s, -s))
		h, l := bits.Mul64(a, a)
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	return math.Sqrt(sum) <= b.clip && b.holds(hi, lo)
}

// holds reports whether a sum of squares belongs to a point of the ball.
func (b ball) holds(hi, lo uint64) bool {
	rhi, rlo := bits.Mul64(b.radius, b.radius)
	_, borrow := bits.Sub64(rlo, lo, 0)
	_, borrow = bits.Sub64(rhi, hi, borrow)
	return borrow == 0
}

// settle fills dst, shrinking the vector as little as needed to lie in the ball. Positions shrink with the factor, and
// at factor 0 they are the centre: the loop ends.
//
// |x/unit scale| must be at most radius (1 + 2^-9), so that conversions and squares do not overflow.
func (b ball) settle(dst []int64, x []float64, unit, scale float64) {
	factor := 1.0
	for gap := 0x1p-51; !b.fill(dst, x, unit, scale*factor); gap *= 2 {
		factor = max(0, 1-gap)
	}
}

// fill snaps x/unit scale toward the centre and reports whether it lies in the ball.
func (b ball) fill(dst []int64, x []float64, unit, scale float64) bool {
	var hi, lo uint64
	dst = dst[:len(x)]
	for j, v := range x {
		if unit != 1 {
			v /= unit
		}
		s := int64(v * scale)
		dst[j] = s
		a := uint64(max(s, -s))
		h, l := bits.Mul64(a, a)
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	return b.holds(hi, lo)
}

// norm2 returns n and a unit > 0 with ||x||_2 = n unit up to rounding; n is NaN if x has a NaN or an infinity. The unit
// is 1 unless squares overflow. Squares that underflow do not matter beside minClipNorm.
func norm2(x []float64) (n, unit float64) {
	var sum float64
	for _, v := range x {
		sum += float64(v * v) // the conversion forbids a fused multiply-add: the same bits on every machine
	}
	if sum <= math.MaxFloat64 {
		return math.Sqrt(sum), 1
	}
	var most float64
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return math.NaN(), 1
		}
		most = max(most, math.Abs(v))
	}
	sum = 0
	for _, v := range x {
		v /= most
		sum += float64(v * v)
	}
	return math.Sqrt(sum), most
}

// MinimizerShift bounds from above, in levels, how far apart the places of two vectors lie that are at most 2L/K (1 +
// 2^-18) apart, where L is the clip norm of the ball of radius g/2: their distance, what rounding toward the centre
// adds, and the floating-point arithmetic of clipping and scaling (docs/proofs/theorem-a.md, section 3, a report of a
// minimiser).
func MinimizerShift(g int, units uint64, d int) float64 {
	return snappedShift(float64(g)/float64(units)*(1+0x1p-18), g, d)
}

// Shift bounds the same of two vectors, as they are in memory, that are at most S apart in the L2 norm: ratio is
// S/(2L), an upper bound of it. Above 1 it is 1, since clipping brings them within 2L. NaN, which no mechanism
// accepts, if ratio is NaN or negative.
func Shift(g int, ratio float64, d int) float64 {
	if !(ratio >= 0) {
		return math.NaN()
	}
	return snappedShift(float64(g)*min(ratio, 1), g, d)
}

// snappedShift adds to a distance, in levels, what clipping, scaling and snapping add.
func snappedShift(apart float64, g, d int) float64 {
	levels, dim := float64(g), float64(d)
	return (apart + math.Sqrt(dim)*0x1p-24 + levels*(dim+16)*0x1p-52) * (1 + 0x1p-48)
}
