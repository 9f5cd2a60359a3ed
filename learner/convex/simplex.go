package convex

import "math"

// Simplex is the set of the points whose entries are at least 0 and sum to R: mixtures of R times the unit vectors.
type Simplex struct {
	Dim int     // number of entries, at least 1
	R   float64 // sum, in (1e-100, 1e100]
}

// Project subtracts a threshold from every entry and replaces what is negative then by 0; the threshold is the one
// after which the sum is R (Michelot 1986).
func (s Simplex) Project(dst, x []float64) {
	if s.Contains(x) {
		copy(dst, x)
		return
	}
	if !finite(x) {
		s.Start(dst)
		return
	}
	copy(dst, x)
	soften(dst, s.R, func(v float64) float64 { return v })
}

// Contains reports whether no entry of x is below 0 and their sum is R up to rounding: at most R and at least (1 -
// 2^-48) R.
func (s Simplex) Contains(x []float64) bool { return nonnegative(x) && fits(norm1(x), s.R) }

// Radius returns R, the norm of the corners.
func (s Simplex) Radius() float64 { return s.R }

// Start writes R/d everywhere.
func (s Simplex) Start(dst []float64) {
	for i := range dst {
		dst[i] = s.R / float64(len(dst))
	}
	fit(dst, s.R)
}

// L1Ball is the set of the points whose absolute values sum to at most R.
type L1Ball struct {
	R float64 // in (1e-100, 1e100]
}

// Project writes to dst the projection of the absolute values onto the simplex, with the signs put back (Duchi,
// Shalev-Shwartz, Singer, Chandra 2008), for a point outside the ball.
func (b L1Ball) Project(dst, x []float64) {
	if b.Contains(x) {
		copy(dst, x)
		return
	}
	if !finite(x) {
		clear(dst)
		return
	}
	copy(dst, x)
	soften(dst, b.R, math.Abs)
}

// Contains reports whether the absolute values of x sum to at most R.
func (b L1Ball) Contains(x []float64) bool { return norm1(x) <= b.R }

// Radius returns R, the norm of the corners.
func (b L1Ball) Radius() float64 { return b.R }

// Start writes the origin.
func (b L1Ball) Start(dst []float64) { clear(dst) }

// soften moves the entries of x, whose sizes sum to more than r or can be negative, by one threshold towards 0, such
// that the sizes that stay above 0 sum to r. The size of an entry is its value or its absolute value.
//
// The threshold tau is the root of the convex piecewise linear sum of max(size - tau, 0) - r. Michelot's iteration is
// Newton's method on it, from the left: exact after finitely many steps, and without memory of its own. Sizes are taken
// below the largest one, so that the threshold keeps its digits when all of them are large.
func soften(x []float64, r float64, size func(float64) float64) {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, size(v))
	}
	tau := -r
	for {
		var total compensated
		count := 0
		for _, v := range x {
			if w := size(v) - top; w > tau {
				total.add(w)
				count++
			}
		}
		total.add(-r)
		// Rounding can make the last step one back: only a rising threshold is sure to end.
		next := total.value() / float64(count)
		if !(next > tau) {
			break
		}
		tau = next
	}
	for i, v := range x {
		y := size(v) - top - tau
		if !(y > 0) {
			x[i] = 0
			continue
		}
		if size(v) != v {
			y = -y
		}
		x[i] = y
	}
	fit(x, r)
}

// fit scales x by what rounding left between r and the sum of its absolute values, such that the sum fits.
func fit(x []float64, r float64) {
	if s := norm1(x); !fits(s, r) {
		scale(x, r/s)
	}
	for norm1(x) > r {
		scale(x, 1-0x1p-52)
	}
}

// fits reports whether a sum is r up to rounding, and not above it. A product with r/s is exact to 2^-53, so that fit
// needs a few steps of 2^-52 at most.
func fits(s, r float64) bool { return s <= r && s >= r*(1-0x1p-48) }

// norm1 returns the sum of the absolute values.
func norm1(x []float64) float64 {
	var s compensated
	for _, v := range x {
		s.add(math.Abs(v))
	}
	return s.value()
}

// compensated is a sum that carries what rounding loses (Neumaier 1974): of relative error 2^-52 for terms of one sign,
// however many.
type compensated struct{ sum, lost float64 }

func (c *compensated) add(v float64) {
	t := c.sum + v
	if math.Abs(c.sum) >= math.Abs(v) {
		c.lost += (c.sum - t) + v
	} else {
		c.lost += (v - t) + c.sum
	}
	c.sum = t
}

func (c *compensated) value() float64 { return c.sum + c.lost }
