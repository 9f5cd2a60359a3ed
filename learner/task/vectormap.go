package task

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/panlearn/panlearn/learner/convex"
)

// vectorMap is a compiled Vector. Its scale keeps zero at zero.
type vectorMap struct {
	dimension int
	affine    affine
}

func newVectorMap(v *Vector) *vectorMap {
	return &vectorMap{dimension: v.Dimension, affine: newAffine(v.Min, v.Max, v.Scale)}
}

// add appends the nonzero coordinates of a row.
func (m *vectorMap) add(row Row, dst *convex.Example) error {
	if row.Index == nil && len(row.Value) != m.dimension {
		return fmt.Errorf("%d values, want %d", len(row.Value), m.dimension)
	}
	if row.Index != nil && len(row.Index) != len(row.Value) {
		return fmt.Errorf("%d indices for %d values", len(row.Index), len(row.Value))
	}
	last := int32(-1)
	for k, v := range row.Value {
		i := int32(k)
		if row.Index != nil {
			i = row.Index[k]
		}
		if i <= last || int(i) >= m.dimension {
			return fmt.Errorf("value number %d has its index out of order or above %d", k+1, m.dimension)
		}
		last = i
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("not a finite number")
		}
		if v = m.affine.apply(v); v != 0 {
			dst.Index = append(dst.Index, i)
			dst.Value = append(dst.Value, v)
		}
	}
	return nil
}

func (m *vectorMap) coordinates() []Coordinate {
	out := make([]Coordinate, m.dimension)
	for i := range out {
		// Indices count from 1, as in the data.
		out[i] = Coordinate{
			Name: "x" + strconv.Itoa(i+1), Kind: string(Numeric),
			Min: m.affine.low, Max: m.affine.high, Factor: m.affine.a, Offset: m.affine.b,
		}
	}
	return out
}
