package task

import (
	"errors"
	"fmt"
	"math"
)

// vectorMap is a compiled Vector. Its scale keeps zero at zero.
type vectorMap struct {
	dimension int
	hidden    bool
	affine    affine
	source    *Source
}

func newVectorMap(v *Vector) *vectorMap {
	m := &vectorMap{dimension: v.Dimension, hidden: v.Hidden, affine: newAffine(v.Min, v.Max, v.Scale), source: &Source{Kind: Numeric}}
	m.source.setAffine(m.affine)
	return m
}

// values writes the scaled values of a row to dst, of the length of Row.Value, and checks the row.
func (m *vectorMap) values(row Row, dst []float64) error {
	if row.Index == nil && len(row.Value) != m.dimension {
		return fmt.Errorf("%d values, want %d", len(row.Value), m.dimension)
	}
	if row.Index != nil && len(row.Index) != len(row.Value) {
		return fmt.Errorf("%d indices for %d values", len(row.Index), len(row.Value))
	}
	last := int32(-1)
	for k, v := range row.Value {
		if row.Index != nil {
			i := row.Index[k]
			if i <= last || int(i) >= m.dimension {
				return fmt.Errorf("value number %d has its index out of order or above %d", k+1, m.dimension)
			}
			last = i
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("not a finite number")
		}
		dst[k] = m.affine.apply(v)
	}
	return nil
}
