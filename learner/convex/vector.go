package convex

import "math"

// Norm returns the Euclidean norm of x without needless overflow or underflow, +Inf if an entry is infinite or the norm
// exceeds the largest float64, NaN if an entry is NaN. The summation order is fixed and no product is fused, so the
// result is the same on every architecture.
func Norm(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += float64(v * v)
	}
	if plain(s) {
		return math.Sqrt(s)
	}
	var m float64
	for _, v := range x {
		if math.IsNaN(v) {
			return math.NaN()
		}
		m = max(m, math.Abs(v))
	}
	if m == 0 || math.IsInf(m, 0) {
		return m
	}
	s = 0
	for _, v := range x {
		r := v / m
		s += float64(r * r)
	}
	return m * math.Sqrt(s)
}

// plain reports whether neither overflow nor lost small terms can have changed more than the last digits of a
// sum of squares.
func plain(s float64) bool { return s > 1e-280 && s < 1e280 }

// surelyWithin reports whether the norm of x is below l by more than rounding: four sums at once are faster than the
// fixed order of Norm. It is false where they could have lost or gained digits, for numbers that are not finite, and
// for long vectors.
func surelyWithin(x []float64, l float64) bool {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		v := x[i : i+4 : i+4]
		a += float64(v[0] * v[0])
		b += float64(v[1] * v[1])
		c += float64(v[2] * v[2])
		d += float64(v[3] * v[3])
	}
	for _, v := range x[i:] {
		a += float64(v * v)
	}
	square := float64(l * l)
	return plain(square) && len(x) <= 1<<24 && (a+b)+(c+d) < square*(1-0x1p-20)
}

// Clip scales x in place to norm at most l and reports whether it changed anything. A vector with a non-finite entry or
// norm becomes zero, which a device must report when its gradient does not exist: sending nothing would reveal
// something about the event. l must be finite and not negative; for any other l the vector becomes zero too.
func Clip(x []float64, l float64) (clipped bool) {
	if l > 0 && surelyWithin(x, l) {
		return false
	}
	n := Norm(x)
	if math.IsNaN(n) || math.IsInf(n, 0) || !(l >= 0) {
		clear(x)
		return true
	}
	if n <= l {
		return false
	}
	// Rounding may leave the norm an ulp above l: shrink by an ulp until it is not.
	scale := l / n
	if scale < 0x1p-1000 {
		// The quotient has lost digits, or all of them: by way of the unit vector.
		for i := range x {
			x[i] /= n
		}
		scale = l
	}
	for range 8 {
		var s float64
		for i := range x {
			x[i] *= scale
			s += float64(x[i] * x[i])
		}
		if plain(s) && math.Sqrt(s) <= l || !plain(s) && Norm(x) <= l {
			return true
		}
		scale = 1 - 0x1p-52
	}
	// Only among subnormal numbers can a product round back up for ever.
	clear(x)
	return true
}
