package convex

import (
	"fmt"
	"math"
)

// A Set is a closed convex set that contains the origin, where every method starts.
type Set interface {
	// Project overwrites dst with the point of the set nearest to x in Euclidean distance; dst and x have the same length and
	// may be the same slice. A point of the set is returned unchanged, bit for bit.
	Project(dst, x []float64)
	// Contains reports whether x is in the set. NaN never is.
	Contains(x []float64) bool
	// Radius bounds the distance of every point of the set from the origin; it is the D_0 of the risk bounds.
	Radius() float64
}

// Ball is the Euclidean ball around the origin.
type Ball struct {
	R float64 // radius, finite and positive
}

// NewBall returns the ball of the given radius, finite and positive.
func NewBall(radius float64) (Ball, error) {
	if !(radius > 0) || math.IsInf(radius, 0) {
		return Ball{}, fmt.Errorf("radius: %v, want a finite number above 0", radius)
	}
	return Ball{R: radius}, nil
}

// Project scales x down to the ball.
func (b Ball) Project(dst, x []float64) {
	copy(dst, x)
	Clip(dst, b.R)
}

// Contains reports whether the norm of x is at most the radius.
func (b Ball) Contains(x []float64) bool { return Norm(x) <= b.R }

// Radius returns the radius.
func (b Ball) Radius() float64 { return b.R }
