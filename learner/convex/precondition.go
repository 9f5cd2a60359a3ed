package convex

import (
	"fmt"
	"math"
	"slices"
)

// MaxScale bounds the scales of a Preconditioner and their inverses.
const MaxScale = 1e12

// A Preconditioner scales coordinate j of an example by 1/sqrt(h_j + Damping), where h_j is an estimate of the coordinate's second
// moment that a first cohort gives. All of its fields are public. Coordinates from Dim on, such as an intercept, keep their scale.
type Preconditioner struct {
	Dim     int     `json:"dim"`     // coordinates that are scaled
	Norm    float64 `json:"norm"`    // M: bound on the norm of the vector of squares, which is clipped to it
	Damping float64 `json:"damping"` // c > 0: keeps rare coordinates from growing without bound
	Bound   float64 `json:"bound"`   // X: bound on the norm of a scaled example; a longer one is scaled down
}

// Validate names the first field that is out of range.
func (p Preconditioner) Validate() error {
	switch {
	case p.Dim < 1:
		return fmt.Errorf("preconditioner: dim: %d, want at least 1", p.Dim)
	case !(p.Norm > 0 && p.Norm <= MaxScale):
		return fmt.Errorf("preconditioner: norm: %v, want a number above 0 and at most %g", p.Norm, MaxScale)
	case !(p.Damping >= 1/MaxScale && p.Damping <= MaxScale):
		return fmt.Errorf("preconditioner: damping: %v, want a number from %g to %g", p.Damping, 1/MaxScale, MaxScale)
	case !(p.Bound > 0) || math.IsInf(p.Bound, 0):
		return fmt.Errorf("preconditioner: bound: %v, want a finite number above 0", p.Bound)
	}
	return nil
}

// Squares overwrites dst, of length Dim, with the squares of the coordinates. Clipped to the norm M they are what an event
// reports of itself.
func (p Preconditioner) Squares(dst []float64, x Example) {
	clear(dst)
	for k, v := range x.Value {
		if j := x.at(k); j < p.Dim {
			dst[j] = v * v
		}
	}
}

// Scales returns 1/sqrt(max(h_j, 0) + Damping + std) for noisy second moments h, std being the standard deviation of the noise in
// one of them: a coordinate whose moment is not seen above the noise is scaled as if it were as large as the noise. It errs on moments
// that are not finite.
func (p Preconditioner) Scales(moments []float64, std float64) ([]float64, error) {
	if len(moments) != p.Dim {
		return nil, fmt.Errorf("preconditioner: %d second moments, want %d", len(moments), p.Dim)
	}
	out := make([]float64, p.Dim)
	for j, h := range moments {
		s := 1 / math.Sqrt(max(h, 0)+p.Damping+std)
		if math.IsNaN(s) || math.IsInf(h, 0) || s == 0 {
			return nil, fmt.Errorf("preconditioner: second moment %d or its noise is not finite", j)
		}
		out[j] = max(s, 1/MaxScale)
	}
	return out, nil
}

// CheckScales refuses scales that Scales cannot have answered.
func (p Preconditioner) CheckScales(scales []float64) error {
	if len(scales) != p.Dim {
		return fmt.Errorf("%d scales, want %d", len(scales), p.Dim)
	}
	most := 1 / math.Sqrt(p.Damping)
	for j, s := range scales {
		if !(s >= 1/MaxScale && s <= most) {
			return fmt.Errorf("scale %d: %v, want %g to %v, one over the root of the damping", j, s, 1/MaxScale, most)
		}
	}
	return nil
}

// Rescale overwrites dst with an example in the scaled coordinates, of norm at most Bound. It reuses dst's memory, and shares
// the index with x.
func (p Preconditioner) Rescale(dst *Example, x Example, scales []float64) {
	value := slices.Grow(dst.Value[:0], len(x.Value))[:len(x.Value)]
	for k, v := range x.Value {
		if j := x.at(k); j < p.Dim {
			v *= scales[j]
		}
		value[k] = v
	}
	Clip(value, p.Bound)
	*dst = Example{Index: x.Index, Value: value, Label: x.Label}
}

// at is the coordinate of the k-th value.
func (e Example) at(k int) int {
	if e.Index == nil {
		return k
	}
	return int(e.Index[k])
}
