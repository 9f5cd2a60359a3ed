package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

func (s *Spec) checkLabel() error {
	l := s.Label
	if s.Events.Format == LIBSVM || s.Events.Format == IDX {
		if l.Column != "" {
			return refuse("label.column", l.Column, "nothing: %s has a place for the label", s.Events.Format)
		}
	} else {
		var features []string
		for _, c := range s.Features.Columns {
			features = append(features, c.Name)
		}
		if slices.Contains(features, l.Column) {
			return refuse("label.column", l.Column, "a column that is not a feature")
		}
		if err := checkColumnName("label.column", l.Column, nil); err != nil {
			return err
		}
		if err := s.checkPresent("label.column", l.Column); err != nil {
			return err
		}
	}
	kind := traitsOf(s.Model.Loss).label
	for _, key := range [...]struct {
		path    string
		given   bool
		value   any
		belongs bool
	}{
		{"label.positive", len(l.Positive) > 0, l.Positive, kind == twoClasses},
		{"label.negative", len(l.Negative) > 0, l.Negative, kind == twoClasses},
		{"label.classes", len(l.Classes) > 0, l.Classes, kind == manyClasses},
		{"label.min", l.Min != 0, l.Min, kind == number},
		{"label.max", l.Max != 0, l.Max, !kind.classes()},
		{"label.scale", l.Scale != "", l.Scale, kind == number},
	} {
		if key.given && !key.belongs {
			return refuse(key.path, key.value, "nothing for loss %s: its labels are %s", s.Model.Loss, kind)
		}
	}
	switch kind {
	case twoClasses:
		return l.checkTwoClasses()
	case manyClasses:
		if len(l.Classes) < 2 {
			return refuse("label.classes", l.Classes, "at least two labels")
		}
		return checkDistinct(make(map[string]bool), "label.classes", l.Classes)
	case count:
		if !(l.Max >= 1 && l.Max <= maxCount && l.Max == math.Trunc(l.Max)) {
			return refuse("label.max", l.Max, "a whole number from 1 to 2^53: the largest count")
		}
		return nil
	}
	if err := checkRange("label", l.Min, l.Max); err != nil {
		return err
	}
	return checkScale("label.scale", l.Scale)
}

func (l *Label) checkTwoClasses() error {
	seen := make(map[string]bool)
	if len(l.Positive) == 0 {
		return refuse("label.positive", "", "at least one label")
	}
	if err := checkDistinct(seen, "label.positive", l.Positive); err != nil {
		return err
	}
	if len(l.Negative) == 0 {
		return refuse("label.negative", "", "at least one label")
	}
	return checkDistinct(seen, "label.negative", l.Negative)
}

// checkDistinct refuses blank labels and labels that were seen, and adds the others to them.
func checkDistinct(seen map[string]bool, path string, labels []string) error {
	for i, w := range labels {
		key := classKey(w)
		if key == "" || seen[key] {
			return refuse(path+"."+strconv.Itoa(i), w, "a label that is not blank and not declared already")
		}
		seen[key] = true
	}
	return nil
}

// classKey maps spellings of one number to one key: +1, 1 and 1.0 are the same label.
func classKey(label string) string {
	label = strings.TrimSpace(label)
	if f, err := parseFinite(label); err == nil {
		return strconv.FormatFloat(f+0, 'g', -1, 64) // + 0 turns -0 into 0
	}
	return label
}

// labelMap is the compiled label.
type labelMap struct {
	column  string
	kind    labelKind
	classes map[string]float64 // of classes: by classKey, as the loss sees them
	names   []string           // of classes, in the order of the loss
	affine  affine             // of numbers and counts
}

func compileLabel(s *Spec) labelMap {
	l := s.Label
	m := labelMap{column: l.Column, kind: traitsOf(s.Model.Loss).label, classes: make(map[string]float64)}
	if m.column == "" {
		m.column = "label"
	}
	name := func(labels []string, y float64) {
		for _, w := range labels {
			m.classes[classKey(w)] = y
		}
	}
	switch m.kind {
	case twoClasses:
		name(l.Negative, -1)
		name(l.Positive, 1)
		m.names = []string{l.Negative[0], l.Positive[0]}
	case manyClasses:
		for i := range l.Classes {
			name(l.Classes[i:i+1], float64(i))
		}
		m.names = l.Classes
	case count:
		m.affine = newAffine(0, l.Max, Raw)
	default:
		m.affine = newAffine(l.Min, l.Max, l.Scale)
	}
	return m
}

// parse returns the label as the loss sees it.
func (m *labelMap) parse(text string) (float64, error) {
	if m.kind.classes() {
		y, ok := m.classes[classKey(text)]
		if !ok {
			return 0, fmt.Errorf("not one of the declared labels")
		}
		return y, nil
	}
	v, err := parseFinite(strings.TrimSpace(text))
	if err != nil {
		return 0, err
	}
	if m.kind == count && (v < 0 || v != math.Trunc(v)) {
		return 0, fmt.Errorf("not a count: want a whole number from 0")
	}
	return m.affine.apply(v), nil
}
