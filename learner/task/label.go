package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// labelWords describe how labels of each kind are declared.
var labelWords = [...]string{convex.TwoClasses: "one of two classes, in positive and negative",
	convex.ManyClasses: "one of several classes, in classes",
	convex.Numbers:     "numbers, from min to max", convex.Counts: "counts, up to max"}

// validate refuses a label that is contradictory, out of range, absent from events, or not of the loss's kind.
func (l *Label) validate(events Events, features *Features, loss string) error {
	if events.Format.Vectors() {
		if l.Column != "" {
			return refuse("label.column", l.Column, "nothing: %s has a place for the label", events.Format)
		}
	} else {
		var taken []string
		for _, c := range features.Columns {
			taken = append(taken, c.Fields()...)
		}
		if slices.Contains(taken, l.Column) {
			return refuse("label.column", l.Column, "a column that is not a feature")
		}
		if err := validateColumnName("label.column", l.Column, nil); err != nil {
			return err
		}
		if err := events.validatePresent("label.column", l.Column); err != nil {
			return err
		}
	}
	kind := convex.TraitsOf(loss).Labels
	for _, key := range [...]struct {
		path    string
		given   bool
		value   any
		belongs bool
	}{
		{"label.positive", len(l.Positive) > 0, l.Positive, kind == convex.TwoClasses},
		{"label.negative", len(l.Negative) > 0, l.Negative, kind == convex.TwoClasses},
		{"label.classes", len(l.Classes) > 0, l.Classes, kind == convex.ManyClasses},
		{"label.min", l.Min != 0, l.Min, kind == convex.Numbers},
		{"label.max", l.Max != 0, l.Max, !kind.Classes()},
		{"label.scale", l.Scale != "", l.Scale, kind == convex.Numbers},
		{"label.offset", l.Offset, l.Offset, kind == convex.Numbers},
		{"label.marks", len(l.Marks) > 0, l.Marks, !kind.Classes()},
		{"label.unit", l.Unit != 0, l.Unit, kind == convex.Numbers},
	} {
		if key.given && !key.belongs {
			return refuse(key.path, key.value, "nothing for loss %s: its labels are %s", loss, labelWords[kind])
		}
	}
	if err := validateMarks("label", l.Marks); err != nil {
		return err
	}
	switch kind {
	case convex.TwoClasses:
		return l.validateTwoClasses()
	case convex.ManyClasses:
		if len(l.Classes) < 2 {
			return refuse("label.classes", l.Classes, "at least two labels")
		}
		return validateDistinct(make(map[string]bool), "label.classes", l.Classes)
	case convex.Counts:
		if !(l.Max >= 1 && l.Max <= maxCount && l.Max == math.Trunc(l.Max)) {
			return refuse("label.max", l.Max, "a whole number from 1 to 2^53: the largest count")
		}
		return nil
	}
	if err := validateRange("label", l.Min, l.Max); err != nil {
		return err
	}
	if l.Offset {
		if err := l.validateOffset(features); err != nil {
			return err
		}
	}
	return l.validateScale()
}

func (l *Label) validateTwoClasses() error {
	seen := make(map[string]bool)
	if len(l.Positive) == 0 {
		return refuse("label.positive", "", "at least one label")
	}
	if err := validateDistinct(seen, "label.positive", l.Positive); err != nil {
		return err
	}
	if len(l.Negative) == 0 {
		return refuse("label.negative", "", "at least one label")
	}
	return validateDistinct(seen, "label.negative", l.Negative)
}

// validateDistinct refuses blank labels and labels in seen, and adds the others to seen.
func validateDistinct(seen map[string]bool, path string, labels []string) error {
	for i, w := range labels {
		key := classKey(w)
		if key == "" || seen[key] {
			return refuse(path+"."+strconv.Itoa(i), w, "a label that is not blank and not declared already")
		}
		seen[key] = true
	}
	return nil
}

// classKey maps all spellings of a number to one key: +1, 1 and 1.0 are the same label.
func classKey(label string) string {
	label = strings.TrimSpace(label)
	if len(label) > longestNumber {
		return label
	}
	if f, err := parseFinite(label); err == nil {
		return strconv.FormatFloat(f+0, 'g', -1, 64) // + 0 turns -0 into 0
	}
	return label
}

// labelMap is the compiled label.
type labelMap struct {
	column  string
	kind    convex.Labels
	classes map[string]float64 // of classes: the loss's values by classKey
	names   []string           // of classes, in the order of the loss
	affine  affine             // of numbers and counts

	low, high float64 // of numbers and counts: bounds in the units of the data
	marks     []string
}

func compileLabel(s *Spec) labelMap {
	l := s.Label
	m := labelMap{column: l.Column, kind: s.Model.traits().Labels, classes: make(map[string]float64)}
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
	m.low, m.high, m.marks = l.Min, l.Max, l.Marks
	return m
}

// read returns the label in the units of the data; for a class, the value that the loss sees.
func (m *labelMap) read(text string) (float64, error) {
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
func (m *labelMap) seen(label, offset float64) float64 {
	if m.kind.Classes() {
		return label
	}
	return m.affine.apply(label - offset)
}

// parse reads a label and returns the value that the loss sees; an offset is subtracted from numbers.
func (m *labelMap) parse(text string, offset float64) (float64, error) {
	label, err := m.read(text)
	if err != nil {
		return 0, err
	}
	return m.seen(label, offset), nil
}

// number reads a label that is a number or a count.
func (m *labelMap) number(text string) (float64, error) {
	text, err := unmarked(strings.TrimSpace(text), m.marks)
	if err != nil {
		return 0, err
	}
	return parseFinite(text)
}

// Classification reports whether the label is a class, one of two or of several, rather than a number or a count.
func (m *FeatureMap) Classification() bool { return m.label.kind.Classes() }

// Outputs returns the number of scores of an event: one for each class of softmax, one for every other loss.
// The parameters of a model are as many blocks, each of Dim numbers.
func (m *FeatureMap) Outputs() int {
	if m.label.kind == convex.ManyClasses {
		return len(m.label.names)
	}
	return 1
}

// Classes returns the names of the classes in the order of the loss, negative before positive; nil if the label is no
// class. The caller must not change it.
func (m *FeatureMap) Classes() []string { return m.label.names }

// Labels returns the extreme labels as the loss sees them: -1 and 1, every class of softmax, the scaled bounds of a
// number, 0 and the largest count.
func (m *FeatureMap) Labels() []float64 {
	switch m.label.kind {
	case convex.TwoClasses:
		return []float64{-1, 1}
	case convex.ManyClasses:
		out := make([]float64, len(m.label.names))
		for i := range out {
			out[i] = float64(i)
		}
		return out
	}
	bounds := m.label.affine.bounds()
	return bounds[:]
}

// Scores overwrites dst with the scores of a mapped event, the inner products with the blocks of theta, and returns it.
// It grows dst to length Outputs where it is shorter.
func (m *FeatureMap) Scores(dst, theta []float64, e convex.Example) []float64 {
	dst = slices.Grow(dst[:0], m.Outputs())[:m.Outputs()]
	for k := range dst {
		dst[k] = e.Dot(theta[k*m.dim : (k+1)*m.dim])
	}
	return dst
}

// Predict turns the scores of a mapped event into a prediction, less the event's offset where the label has one: the
// class as the loss sees it (+1 where the score is positive and -1 elsewhere; of several the one of the largest score,
// the first among equals), the number in the units of the data, or the expected count, each cut to the declared range.
func (m *FeatureMap) Predict(scores []float64) float64 {
	switch m.label.kind {
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
		return min(math.Exp(min(scores[0], m.scoreBound)), m.label.high) // the slope of the loss's exponential
	}
	return min(max(m.InUnits(scores[0]), m.label.low), m.label.high)
}

// InUnits converts the score of a number into the units of the data, without cutting it to the bounds. It returns
// scores of other losses unchanged. For scale log it is not linear in the score.
func (m *FeatureMap) InUnits(score float64) float64 {
	if m.label.kind != convex.Numbers {
		return score
	}
	return m.label.affine.raw(m.InLabel(score))
}

// InLabel works like InUnits, but is always linear in the score: for scale log it returns the logarithm of the number.
func (m *FeatureMap) InLabel(score float64) float64 {
	if m.label.kind != convex.Numbers {
		return score
	}
	return m.label.affine.invert(score)
}

// Target converts the label of a mapped event into the value to compare Predict with: the class, or the number or count
// in the units of the data, moved into the declared bounds.
func (m *FeatureMap) Target(label float64) float64 {
	return m.InUnits(label)
}

// ClassName returns the name of a class that Predict or Target returned.
func (m *FeatureMap) ClassName(class float64) string {
	if m.label.kind == convex.TwoClasses {
		return m.label.names[int(class+1)/2]
	}
	return m.label.names[int(class)]
}
