package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// Map writes the row's feature vector and label to dst, reusing dst's memory: it allocates nothing once dst has grown.
// The vector has finite values and norm at most Bound: a longer one is scaled down, except if scales are to be
// estimated. The error is a *RowError; dst is then unspecified, and the caller reports the zero vector. Fields hold the
// text of a value as in a csv file, not as in JSON: for events in JSON see EventOf of package stream/device.
func (m *FeatureMap) Map(row Row, dst *convex.Example) error {
	fail := func(column, reason string) error {
		return &RowError{File: row.File, Line: row.Line, Column: column, Reason: reason}
	}
	sources := len(m.inputs)
	dst.Offset = 0
	if m.vector != nil {
		sources = len(row.Value)
	} else if len(row.Fields) != len(m.schema.Columns) {
		return fail("", fmt.Sprintf("%d fields, want %d", len(row.Fields), len(m.schema.Columns)))
	}
	w := m.writer(dst, sources)
	if m.vector != nil {
		if err := m.vector.values(row, w.sources); err != nil {
			return fail("", err.Error())
		}
		if !m.vector.hidden {
			w.addVector(row.Index)
		}
	} else {
		for i := range m.inputs {
			in := &m.inputs[i]
			v, missing, err := in.value(row.Fields)
			if err != nil {
				return fail(in.Column, err.Error())
			}
			w.sources[i] = v
			switch {
			case in.first == none:
			case in.Kind == Text:
				if !missing {
					w.setWords(in, strings.TrimSpace(row.Fields[in.fields[0]]))
				}
			case v == none && !in.Kind.Number():
			case in.Kind.Number():
				w.set(in.first, v)
				if in.Told {
					w.tell(in.first+1, missing)
				}
			case in.Kind == Hats:
				w.setHats(in.Source, in.first, v)
			default:
				w.set(in.first+int(v), 1)
			}
		}
	}
	var label float64 // read first: a row without a label costs its own work and a decoy's
	if !m.schema.Unlabelled {
		var err error
		if label, err = m.LabelMap.read(row.Label); err != nil {
			return fail(m.LabelMap.column, err.Error())
		}
	}
	w.addDerived(row.Index)
	if m.public != nil {
		w.addPublic(row)
		dst.Offset = w.offset
	}
	convex.Clip(w.value, m.longest)
	if m.intercept != 0 {
		w.put(m.dim-1, m.intercept)
		convex.Clip(w.value, m.Bound()) // rounding may have left it an ulp above
	}
	dst.Index, dst.Value = w.index, w.value
	if m.dense {
		dst.Index = nil
	}
	dst.Label = 0
	if !m.schema.Unlabelled {
		dst.Label = m.LabelMap.seen(label, dst.Offset)
	}
	return nil
}

// A writer appends coordinates, which have to come in order.
type writer struct {
	*FeatureMap
	index   []int32 // nil where the vector is dense
	value   []float64
	sources []float64 // the scaled values, the positions and the places between knots that coordinates are made from
	scratch []float64 // of the public model
	offset  float64   // of the label
}

// writer returns a writer that uses dst's memory. It keeps the sources after the values, so that they need no memory of
// their own.
func (m *FeatureMap) writer(dst *convex.Example, sources int) writer {
	most := m.most
	if m.vector != nil && !m.vector.hidden {
		most += sources
	}
	last := most + sources + m.public.scratch()
	value := slices.Grow(dst.Value[:0], last)
	w := writer{FeatureMap: m, value: value, sources: value[most : most+sources], scratch: value[most+sources : last]}
	if !m.dense {
		w.index = slices.Grow(dst.Index[:0], max(most, 1)) // nil would mean dense
	}
	return w
}

// put appends a coordinate without scaling it.
func (w *writer) put(at int, value float64) {
	if w.index != nil {
		w.index = append(w.index, int32(at))
	}
	w.value = append(w.value, value)
}

// set appends a coordinate times its scale.
func (w *writer) set(at int, value float64) {
	if w.scales != nil {
		value *= w.scales[at]
	}
	w.put(at, convex.Normal(value))
}

// tell appends an indicator even if it is 0, so that a vector of numbers stays dense.
func (w *writer) tell(at int, yes bool) {
	if yes {
		w.set(at, 1)
	} else {
		w.set(at, 0)
	}
}

// addVector appends the nonzero values of a vector. index is nil if all values are given.
func (w *writer) addVector(index []int32) {
	for k, v := range w.sources {
		at := k
		if index != nil {
			at = int(index[k])
		}
		if v != 0 {
			w.set(at, v)
		}
	}
}

// addDerived appends crosses, products and Fourier features. index holds the indices of a vector's values.
func (w *writer) addDerived(index []int32) {
	for i := range w.crosses {
		c := &w.crosses[i]
		if at := c.at(w.sources); at != none {
			value := 1.0
			if c.number != none {
				value = w.sources[c.number]
			}
			w.set(c.first+at, value)
		}
	}
	at := len(w.coordinate) - len(w.products)
	if w.public != nil {
		at -= w.public.width
	}
	if w.fourier != nil {
		at -= len(w.fourier.phases)
	}
	for _, product := range w.products {
		v := 1.0
		for _, in := range product {
			v *= w.sources[in]
		}
		w.set(at, v)
		at++
	}
	if w.fourier == nil {
		return
	}
	for i := range w.fourier.phases {
		w.set(at+i, w.fourier.at(i, w.sources, index))
	}
}

// vectorMap is a compiled Vector. Its scale keeps zero at zero.
type vectorMap struct {
	dimension int
	hidden    bool
	affine    affine
	source    *Source
}

func newVectorMap(v *Vector) *vectorMap {
	m := &vectorMap{dimension: v.Dimension, hidden: v.Hidden, affine: v.affine(), source: &Source{Kind: v.Kind}}
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
		dst[k] = convex.Normal(m.affine.apply(v))
	}
	return nil
}
