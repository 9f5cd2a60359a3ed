package convex

import (
	"fmt"
	"math"
)

// An Example is one user's event after the feature map: a feature vector and a label. It is the private datum of the
// protocol, so it never prints its contents.
type Example struct {
	Index []int32   // coordinates of Value, strictly increasing; nil means dense, coordinate i is Value[i]
	Value []float64 // feature values, unitless, finite
	Label float64   // in the domain of the task's loss, see Loss.CheckLabel

	// Offset adds to the prediction of a number, in the units of the data; no loss sees it.
	Offset float64
}

// Validate reports whether e is a feature vector of dimension dim: lengths agree, indices are strictly increasing and
// below dim, values, their norm and the label are finite. The error names positions, never contents.
func (e Example) Validate(dim int) error {
	if e.Index == nil {
		if len(e.Value) != dim {
			return fmt.Errorf("example: %d dense values, want %d", len(e.Value), dim)
		}
	} else {
		if len(e.Index) != len(e.Value) {
			return fmt.Errorf("example: %d indices for %d values, want as many", len(e.Index), len(e.Value))
		}
		last := int32(-1)
		for k, i := range e.Index {
			if i <= last || int(i) >= dim {
				return fmt.Errorf("example: index at position %d is out of order or outside [0, %d)", k, dim)
			}
			last = i
		}
	}
	if !surelyWithin(e.Value, 1e100) { // which only finite values are
		for k, v := range e.Value {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("example: value at position %d is not finite", k)
			}
		}
		if math.IsInf(Norm(e.Value), 0) {
			return fmt.Errorf("example: the norm of the features overflows; scale them down")
		}
	}
	if math.IsNaN(e.Label) || math.IsInf(e.Label, 0) {
		return fmt.Errorf("example: the label is not finite")
	}
	return nil
}

// Norm returns the Euclidean norm of the features.
func (e Example) Norm() float64 { return Norm(e.Value) }

// Dot returns the inner product of the features with theta.
func (e Example) Dot(theta []float64) float64 {
	var s float64
	if e.Index == nil {
		for i, v := range e.Value {
			s += float64(v * theta[i])
		}
		return s
	}
	for k, i := range e.Index {
		s += float64(e.Value[k] * theta[i])
	}
	return s
}

// Addends is the number of terms that are added up in one part, where rounding must not grow with the number of
// all terms.
const Addends = 1024

// DotInParts is like Dot, but adds up in sums of Addends features.
func (e Example) DotInParts(theta []float64) (score float64) {
	if len(e.Value) <= Addends {
		return e.Dot(theta)
	}
	for at := 0; at < len(e.Value); at += Addends {
		end := min(at+Addends, len(e.Value))
		if e.Index == nil {
			score += Example{Value: e.Value[at:end]}.Dot(theta[at:end])
		} else {
			score += Example{Index: e.Index[at:end], Value: e.Value[at:end]}.Dot(theta)
		}
	}
	return score
}

// AddTo adds scale times the features to dst.
func (e Example) AddTo(dst []float64, scale float64) {
	if e.Index == nil {
		for i, v := range e.Value {
			dst[i] += float64(scale * v)
		}
		return
	}
	for k, i := range e.Index {
		dst[i] += float64(scale * e.Value[k])
	}
}

// Format prints a placeholder under every verb, so that no log or error can carry an event.
func (e Example) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("convex.Example{redacted}")) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (e Example) MarshalText() ([]byte, error) { return fmt.Append(nil, e), nil }

// at returns the coordinate of the k-th value.
func (e Example) at(k int) int {
	if e.Index == nil {
		return k
	}
	return int(e.Index[k])
}
