package convex

import (
	"fmt"
	"math"
)

// Simplex is the set of the points whose entries are at least 0 and sum to R: mixtures of R times the unit vectors.
type Simplex struct {
	Dim int     // number of entries, at least 1
	R   float64 // sum, in (1e-100, 1e100]
}

// NewSimplex returns the simplex of a dimension and of a sum in (1e-100, 1e100].
func NewSimplex(dim int, sum float64) (Simplex, error) {
	if dim < 1 {
		return Simplex{}, fmt.Errorf("simplex: dimension %d, want at least 1", dim)
	}
	return Simplex{Dim: dim, R: sum}, checkRadius(sum, 1e-100, 1e100)
}

// Project subtracts a threshold from every entry and replaces what is negative then by 0; the threshold is the one after which the
// sum is R (Michelot 1986).
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

// Contains reports whether no entry of x is below 0 and their sum is R up to rounding: at most R and at least (1 - 2^-48) R.
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

// NewL1Ball returns the ball of a radius in (1e-100, 1e100].
func NewL1Ball(radius float64) (L1Ball, error) {
	return L1Ball{R: radius}, checkRadius(radius, 1e-100, 1e100)
}

// Project is the projection of the absolute values onto the simplex, with the signs put back (Duchi, Shalev-Shwartz, Singer,
// Chandra 2008), for a point outside the ball.
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
