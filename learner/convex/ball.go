package convex

// Ball is the Euclidean ball around the origin.
type Ball struct {
	R float64 // radius, finite and positive
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

// Start writes the origin.
func (b Ball) Start(dst []float64) { clear(dst) }

// Nonnegative is the part of the Euclidean ball around the origin whose points have no entry below 0.
type Nonnegative struct {
	R float64 // radius, finite and positive
}

// Project replaces the negative entries of x by 0 and scales the rest down to the ball: for a cone and a ball around
// its tip one projection after the other is the projection onto both (Bauschke, Bui, Wang, Projecting onto the
// intersection of a cone and a sphere, 2018).
func (s Nonnegative) Project(dst, x []float64) {
	if !finite(x) {
		clear(dst)
		return
	}
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
	Clip(dst, s.R)
}

// Contains reports whether no entry of x is below 0 and its norm is at most the radius.
func (s Nonnegative) Contains(x []float64) bool { return nonnegative(x) && Norm(x) <= s.R }

// Radius returns the radius.
func (s Nonnegative) Radius() float64 { return s.R }

// Start writes the origin.
func (s Nonnegative) Start(dst []float64) { clear(dst) }

func nonnegative(x []float64) bool {
	for _, v := range x {
		if !(v >= 0) {
			return false
		}
	}
	return true
}
