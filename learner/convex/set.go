package convex

import (
	"fmt"
	"math"
)

// A Set is a closed convex set.
type Set interface {
	// Project overwrites dst with the point of the set nearest to x in Euclidean distance, up to rounding; dst and x have the same
	// length and may be the same slice. A point of the set is returned unchanged, bit for bit, and the result is one. For an x with
	// an entry that is not finite, or whose norm is not, the result is Start.
	Project(dst, x []float64)
	// Contains reports whether x is in the set. NaN never is.
	Contains(x []float64) bool
	// Radius bounds the norm of the points of the set. It bounds their distance from Start too, which is the D_0 of the risk bounds,
	// for ||z - start||^2 <= ||z||^2 - ||start||^2; Near alone starts elsewhere, and has its own Distance.
	Radius() float64
	// Start overwrites dst with the point where every method starts: the projection of the origin; for Near its centre.
	Start(dst []float64)
}

// A SetDeclaration is a constraint set as a task file and a plan name it.
type SetDeclaration struct {
	Kind   string  `json:"kind,omitempty"`   // ball, box, simplex, nonnegative or l1; "" means ball
	Radius float64 `json:"radius,omitempty"` // all but the box: bound on the norm, for l1 on the L1 norm; for the simplex the sum
	Min    float64 `json:"min,omitempty"`    // box: least value of every entry
	Max    float64 `json:"max,omitempty"`    // box: largest value of every entry
}

// New returns the declared set in a dimension of at least 1. The error names the field that does not fit, and what would be accepted.
func (d SetDeclaration) New(dim int) (Set, error) {
	s, err := d.set(dim)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d SetDeclaration) set(dim int) (Set, error) {
	if dim < 1 {
		return nil, fmt.Errorf("set: dimension %d, want at least 1", dim)
	}
	if d.Kind == "box" {
		if d.Radius != 0 {
			return nil, fmt.Errorf("radius: %v, not a parameter of the box; its size is min and max", d.Radius)
		}
		return NewBox(dim, d.Min, d.Max)
	}
	if d.Min != 0 || d.Max != 0 {
		return nil, fmt.Errorf("min, max: %v, %v, parameters of the box alone", d.Min, d.Max)
	}
	switch d.Kind {
	case "", "ball":
		return NewBall(d.Radius)
	case "simplex":
		return NewSimplex(dim, d.Radius)
	case "nonnegative":
		return NewNonnegative(d.Radius)
	case "l1":
		return NewL1Ball(d.Radius)
	}
	return nil, fmt.Errorf("set: unknown kind %q, want ball, box, simplex, nonnegative or l1", d.Kind)
}

func finite(x []float64) bool {
	n := Norm(x)
	return !math.IsNaN(n) && !math.IsInf(n, 0)
}
