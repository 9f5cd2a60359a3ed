package task

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A FeatureMap turns rows into the vectors of a task. It is made from the declaration alone, is immutable, and safe for
// concurrent use.
type FeatureMap struct {
	schema     Schema
	vector     *vectorMap  // libsvm, idx
	columns    []columnMap // csv, jsonl
	label      labelMap
	coordinate []Coordinate
	intercept  float64
	dim        int
	bound      float64
	scoreBound float64 // of counts
	dense      bool    // every event sets every coordinate
}

// A Coordinate describes one coordinate of a feature vector, in terms of the data. The intercept is not among
// them. The value of a numeric coordinate is Factor*x + Offset, with x moved into [Min, Max] first; indicators are 0 or 1.
type Coordinate struct {
	Name   string  `json:"name"`             // unique within the map: age, workclass=Private, url#17, x3
	Column string  `json:"column,omitempty"` // the field of the event; empty for vectors
	Kind   string  `json:"kind"`             // numeric, categorical or hashed
	Word   string  `json:"word,omitempty"`   // of categorical; empty for the words outside the vocabulary
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Factor float64 `json:"factor"`
	Offset float64 `json:"offset"`
}

// Compile validates the declaration and makes its feature map.
func (s *Spec) Compile() (*FeatureMap, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	m := &FeatureMap{schema: s.Schema(), label: compileLabel(s), intercept: s.Intercept, bound: s.NormBound, scoreBound: s.Model.ScoreBound}
	if m.bound == 0 {
		m.bound = s.declaredBound()
	}
	if v := s.Features.Vector; v != nil {
		m.vector = newVectorMap(v)
		m.coordinate = m.vector.coordinates()
	} else {
		m.dense = true
		for i := range s.Features.Columns {
			c := newColumnMap(&s.Features.Columns[i], len(m.coordinate))
			m.columns = append(m.columns, c)
			m.coordinate = append(m.coordinate, c.coordinates()...)
			m.dense = m.dense && c.kind == Numeric
		}
	}
	m.dim = len(m.coordinate)
	if m.intercept != 0 {
		m.dim++
	}
	return m, nil
}

// Schema says what a reader of this task's data has to know.
func (m *FeatureMap) Schema() Schema { return m.schema }

// Dim is d, the length of a feature vector: the intercept, where there is one, is the last coordinate.
func (m *FeatureMap) Dim() int { return m.dim }

// Bound is X, the bound on the norm of every feature vector, intercept included.
func (m *FeatureMap) Bound() float64 { return m.bound }

// Coordinates describes the coordinates but for the intercept, in order. The caller must not change them.
func (m *FeatureMap) Coordinates() []Coordinate { return m.coordinate }

// Names returns the names of the coordinates, in order. The intercept is not among them.
func (m *FeatureMap) Names() []string {
	names := make([]string, len(m.coordinate))
	for i, c := range m.coordinate {
		names[i] = c.Name
	}
	return names
}

// Map writes the row's feature vector and label to dst, reusing dst's memory. The vector has finite values and norm at
// most Bound: a longer one is scaled down. The error is a *RowError, and dst is then unspecified; the caller reports
// the zero vector.
func (m *FeatureMap) Map(row Row, dst *convex.Example) error {
	fail := func(column, reason string) error {
		return &RowError{Line: row.Line, Column: column, Reason: reason}
	}
	if dst.Index == nil {
		dst.Index = make([]int32, 0, len(m.columns)+1) // nil would mean dense
	}
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	if m.vector != nil {
		if err := m.vector.add(row, dst); err != nil {
			return fail("", err.Error())
		}
	} else {
		if len(row.Fields) != len(m.columns) {
			return fail("", fmt.Sprintf("%d fields, want %d", len(row.Fields), len(m.columns)))
		}
		for i := range m.columns {
			c := &m.columns[i]
			if err := c.add(row.Fields[i], dst); err != nil {
				return fail(c.name, err.Error())
			}
		}
	}
	if m.intercept != 0 {
		dst.Index = append(dst.Index, int32(m.dim-1))
		dst.Value = append(dst.Value, m.intercept)
	}
	if m.dense {
		dst.Index = nil
	}
	convex.Clip(dst.Value, m.bound)
	y, err := m.label.parse(row.Label)
	if err != nil {
		return fail(m.label.column, err.Error())
	}
	dst.Label = y
	return nil
}

// dimension is the length of a feature vector, intercept included.
func (s *Spec) dimension() int {
	d := 0
	if s.Intercept != 0 {
		d++
	}
	if v := s.Features.Vector; v != nil {
		d += v.Dimension
	}
	for i := range s.Features.Columns {
		d += s.Features.Columns[i].width()
	}
	return d
}

// declaredBound is the largest norm of a feature vector that the declaration allows.
func (s *Spec) declaredBound() float64 {
	sum := s.Intercept * s.Intercept
	if v := s.Features.Vector; v != nil {
		b := newAffine(v.Min, v.Max, v.Scale).bound()
		sum += b * b * float64(v.MaxNonzeros)
	}
	for i := range s.Features.Columns {
		b := 1.0 // one indicator
		if c := &s.Features.Columns[i]; c.Kind == Numeric {
			b = newAffine(c.Min, c.Max, c.Scale).bound()
		}
		sum += b * b
	}
	return math.Sqrt(sum)
}
