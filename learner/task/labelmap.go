package task

import (
	"fmt"
	"math"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// A LabelMap converts labels to the values that the loss sees, and scores to predictions in the units of the data. It
// is made from the declaration alone, is immutable, and safe for concurrent use.
type LabelMap struct {
	column  string
	kind    convex.Labels
	classes map[string]float64 // of classes: the loss's values by classKey
	names   []string           // of classes, in the order of the loss
	affine  affine             // of numbers and counts

	low, high  float64 // of numbers and counts: bounds in the units of the data
	scoreBound float64 // of counts
	marks      []string
}

func compileLabel(s *Spec) LabelMap {
	l := s.Label
	m := LabelMap{column: l.Column, kind: s.Model.traits().Labels, classes: make(map[string]float64)}
	if m.column == "" {
		m.column = "label"
	}
	name := func(labels []string, y float64) {
		for _, w := range labels {
			m.classes[classKey(w)] = y
		}
	}
	switch m.kind {
	case convex.TwoClasses:
		name(l.Negative, -1)
		name(l.Positive, 1)
		m.names = []string{l.Negative[0], l.Positive[0]}
	case convex.ManyClasses:
		for i := range l.Classes {
			name(l.Classes[i:i+1], float64(i))
		}
		m.names = l.Classes
	case convex.Counts:
		m.affine = newAffine(0, l.Max, Raw)
	default:
		m.affine = l.affine()
	}
	m.low, m.high, m.scoreBound, m.marks = l.Min, l.Max, s.Model.ScoreBound, l.Marks
	return m
}

// read returns the label in the units of the data; for a class, the value that the loss sees.
func (m *LabelMap) read(text string) (float64, error) {
	if m.kind.Classes() {
		y, ok := m.classes[classKey(text)]
		if !ok {
			return 0, fmt.Errorf("not one of the declared labels")
		}
		return y, nil
	}
	v, err := m.number(text)
	if err != nil {
		return 0, err
	}
	if m.kind == convex.Counts && (v < 0 || v != math.Trunc(v)) {
		return 0, fmt.Errorf("not a count: want a whole number from 0")
	}
	return v, nil
}

// seen converts a label from read to the value that the loss sees; an offset is subtracted from numbers.
func (m *LabelMap) seen(label, offset float64) float64 {
	if m.kind.Classes() {
		return label
	}
	return m.affine.apply(label - offset)
}

// parse reads a label and returns the value that the loss sees; an offset is subtracted from numbers.
func (m *LabelMap) parse(text string, offset float64) (float64, error) {
	label, err := m.read(text)
	if err != nil {
		return 0, err
	}
	return m.seen(label, offset), nil
}

// number reads a label that is a number or a count.
func (m *LabelMap) number(text string) (float64, error) {
	text, err := unmarked(strings.TrimSpace(text), m.marks)
	if err != nil {
		return 0, err
	}
	return parseFinite(text)
}

// Classification reports whether the label is a class, one of two or of several, rather than a number or a count.
func (m *LabelMap) Classification() bool { return m.kind.Classes() }

// Outputs returns the number of scores of an event: one for each class of softmax, one for every other loss.
// The parameters of a model are as many blocks, each of Dim numbers.
func (m *LabelMap) Outputs() int {
	if m.kind == convex.ManyClasses {
		return len(m.names)
	}
	return 1
}

// Classes returns the names of the classes in the order of the loss, negative before positive; nil if the label is no
// class. The caller must not change it.
func (m *LabelMap) Classes() []string { return m.names }

// Labels returns the extreme labels as the loss sees them: -1 and 1, every class of softmax, the scaled bounds of a
// number, 0 and the largest count.
func (m *LabelMap) Labels() []float64 {
	switch m.kind {
	case convex.TwoClasses:
		return []float64{-1, 1}
	case convex.ManyClasses:
		out := make([]float64, len(m.names))
		for i := range out {
			out[i] = float64(i)
		}
		return out
	}
	bounds := m.affine.bounds()
	return bounds[:]
}

// Predict turns the scores of a mapped event into a prediction, less the event's offset where the label has one: the
// class as the loss sees it (+1 where the score is positive and -1 elsewhere; of several the one of the largest score,
// the first among equals), the number in the units of the data, or the expected count, each cut to the declared range.
func (m *LabelMap) Predict(scores []float64) float64 {
	switch m.kind {
	case convex.TwoClasses:
		if scores[0] > 0 {
			return 1
		}
		return -1
	case convex.ManyClasses:
		best := 0
		for k, z := range scores {
			if z > scores[best] {
				best = k
			}
		}
		return float64(best)
	case convex.Counts:
		return min(math.Exp(min(scores[0], m.scoreBound)), m.high) // the slope of the loss's exponential
	}
	return min(max(m.InUnits(scores[0]), m.low), m.high)
}

// InUnits converts the score of a number into the units of the data, without cutting it to the bounds. It returns
// scores of other losses unchanged. For scale log it is not linear in the score.
func (m *LabelMap) InUnits(score float64) float64 {
	if m.kind != convex.Numbers {
		return score
	}
	return m.affine.raw(m.InLabel(score))
}

// InLabel works like InUnits, but is always linear in the score: for scale log it returns the logarithm of the number.
func (m *LabelMap) InLabel(score float64) float64 {
	if m.kind != convex.Numbers {
		return score
	}
	return m.affine.invert(score)
}

// Target converts the label of a mapped event into the value to compare Predict with: the class, or the number or count
// in the units of the data, moved into the declared bounds.
func (m *LabelMap) Target(label float64) float64 {
	return m.InUnits(label)
}

// ClassName returns the name of a class that Predict or Target returned.
func (m *LabelMap) ClassName(class float64) string {
	if m.kind == convex.TwoClasses {
		return m.names[int(class+1)/2]
	}
	return m.names[int(class)]
}
