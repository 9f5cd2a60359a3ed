package convex

import (
	"fmt"
	"math"
	"slices"
)

// Near is the part of a set within a distance of one of its points: where a restarted method goes on, when the distance to the optimum
// is bounded by then.
type Near struct {
	set    Set
	center []float64
	r      float64
}

// NewNear returns the part of the set within a distance, finite and positive, of a point of the set.
func NewNear(set Set, center []float64, distance float64) (*Near, error) {
	if !(distance > 0) || math.IsInf(distance, 0) {
		return nil, fmt.Errorf("distance: %v, want a finite number above 0", distance)
	}
	if !set.Contains(center) {
		return nil, fmt.Errorf("center: outside the set, want one of its points")
	}
	return &Near{set: set, center: slices.Clone(center), r: distance}, nil
}

// Project writes P(c + t (x - c)) for the projection P onto the set, the centre c, and the largest t in [0, 1] at which that point is near
// enough. It is the projection onto the intersection: the Lagrangian ||z-x||^2/2 + mu (||z-c||^2 - r^2)/2 has its minimum over the
// set there for t = 1/(1+mu), and the distance from c grows with t. t is found by bisection, to the last digits.
func (s *Near) Project(dst, x []float64) {
	if s.Contains(x) {
		copy(dst, x)
		return
	}
	if !finite(x) {
		s.Start(dst)
		return
	}
	x = slices.Clone(x)
	if s.at(dst, x, 1) {
		return
	}
	// P moves c + t (x - c) no farther from c = P(c) than it was, so the first guess is near enough, up to rounding; it is the answer
	// where the set plays no part.
	low, high, t := 0.0, 1.0, s.r/distance(x, s.center)*(1-0x1p-50)
	for high-low > 0x1p-52*high {
		switch near := s.at(dst, x, t); {
		case !near:
			high = t
		case distance(dst, s.center) >= s.r*(1-0x1p-49):
			return
		default:
			low = t
		}
		t = low + (high-low)/2
	}
	s.at(dst, x, low)
}

// at writes P(c + t (x - c)) and reports whether it is near enough.
func (s *Near) at(dst, x []float64, t float64) bool {
	for i, c := range s.center {
		dst[i] = c + float64(t*(x[i]-c))
	}
	if t == 0 {
		copy(dst, s.center)
	}
	s.set.Project(dst, dst)
	return distance(dst, s.center) <= s.r
}

// Contains reports whether x is in the set and near its centre.
func (s *Near) Contains(x []float64) bool { return s.set.Contains(x) && distance(x, s.center) <= s.r }

// Radius bounds the norm by that of the set, and by the way over the centre. It does not bound the distance from the centre.
func (s *Near) Radius() float64 { return min(s.set.Radius(), Norm(s.center)+s.r) }

// Start writes the centre: a restarted method begins there, and no point of the set is farther from it than Distance.
func (s *Near) Start(dst []float64) { copy(dst, s.center) }

// Distance returns the bound on the distance from the centre, which takes the place of D_0.
func (s *Near) Distance() float64 { return s.r }

// distance returns ||a - b||.
func distance(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		r := v - b[i]
		s += float64(r * r)
	}
	if s > 1e-280 && s < 1e280 {
		return math.Sqrt(s)
	}
	d := make([]float64, len(a))
	for i, v := range a {
		d[i] = v - b[i]
	}
	return Norm(d)
}
