package report

import (
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A sparse is the scratch memory for a row with few features. Its gradient has as few coordinates if the loss has one
// score and the round has no frame that moves the other coordinates.
type sparse struct {
	on     bool
	index  []int32   // of values; never nil
	values []float64 // the row's values: the gradient's, then the scores
	point  []float64 // the round's, at the row's features
}

// unitAt returns the same vector as Unit, bit for bit, and the coordinates of its values; nil means all coordinates.
func (e *Exact) unitAt(rows ...convex.Example) ([]int32, []float64) {
	if !e.sparse.on || len(rows) != 1 {
		return nil, e.Unit(rows...)
	}
	row, unfit := e.fit(rows[0])
	if row.Index == nil {
		return nil, e.only(row, unfit)
	}
	s, n, at := &e.sparse, len(row.Index), len(e.vector)-e.c.Scores
	s.point = slices.Grow(s.point[:0], n)[:n]
	s.values = slices.Grow(s.values[:0], n+e.c.Scores)[:n+e.c.Scores]
	s.index = append(s.index[:0], row.Index...)
	for k, j := range row.Index {
		s.point[k] = e.point[j]
	}
	gradient := s.values[:n]
	convex.ClippedGradient(e.loss, gradient, s.point, convex.Example{Value: row.Value, Label: row.Label}, e.c.ClipNorm)
	if e.c.Radius > 0 {
		convex.Clip(gradient, e.c.Norm())
	}
	if e.c.Scores > 0 {
		for k := range e.c.Scores {
			s.index = append(s.index, int32(at+k))
		}
		e.c.Score(s.values[n:], e.point, row)
	}
	return s.index, s.values
}

func (s *sparse) forget() {
	clear(s.index[:cap(s.index)])
	clear(s.values[:cap(s.values)])
	clear(s.point[:cap(s.point)])
}
