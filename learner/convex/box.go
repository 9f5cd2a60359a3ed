package convex

import "math"

// Box is the set of the points whose entries all lie between two bounds.
type Box struct {
	Dim      int     // number of entries, at least 1; Radius depends on it
	Min, Max float64 // finite, Min below Max, in units of theta
}

// Project cuts every entry to the bounds.
func (b Box) Project(dst, x []float64) {
	if !finite(x) {
		b.Start(dst)
		return
	}
	for i, v := range x {
		dst[i] = b.cut(v)
	}
}

func (b Box) cut(v float64) float64 {
	switch {
	case v < b.Min:
		return b.Min
	case v > b.Max:
		return b.Max
	}
	return v
}

// Contains reports whether every entry of x lies between the bounds.
func (b Box) Contains(x []float64) bool {
	for _, v := range x {
		if !(v >= b.Min && v <= b.Max) {
			return false
		}
	}
	return true
}

// Radius returns the norm of the corner that is farthest from the origin.
func (b Box) Radius() float64 {
	return math.Sqrt(float64(b.Dim)) * max(math.Abs(b.Min), math.Abs(b.Max))
}

// Start writes the entry nearest to 0 everywhere.
func (b Box) Start(dst []float64) {
	for i := range dst {
		dst[i] = b.cut(0)
	}
}
