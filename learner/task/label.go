package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Classification reports whether the label is a class, which follows from the loss.
func (s *Spec) Classification() bool { return s.Model.Loss == "logistic" }

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
	if s.Classification() {
		switch {
		case l.Min != 0:
			return refuse("label.min", l.Min, "nothing for loss %s: its labels are classes", s.Model.Loss)
		case l.Max != 0:
			return refuse("label.max", l.Max, "nothing for loss %s: its labels are classes", s.Model.Loss)
		case l.Scale != "":
			return refuse("label.scale", l.Scale, "nothing for loss %s: its labels are classes", s.Model.Loss)
		}
		return l.checkClasses()
	}
	if len(l.Positive) > 0 {
		return refuse("label.positive", l.Positive, "nothing for loss %s: its labels are numbers", s.Model.Loss)
	}
	if len(l.Negative) > 0 {
		return refuse("label.negative", l.Negative, "nothing for loss %s: its labels are numbers", s.Model.Loss)
	}
	if err := checkRange("label", l.Min, l.Max); err != nil {
		return err
	}
	return checkScale("label.scale", l.Scale)
}

func (l *Label) checkClasses() error {
	seen := make(map[string]bool)
	for _, class := range []struct {
		path   string
		labels []string
	}{{"label.positive", l.Positive}, {"label.negative", l.Negative}} {
		if len(class.labels) == 0 {
			return refuse(class.path, "", "at least one label")
		}
		for i, w := range class.labels {
			key := classKey(w)
			if key == "" || seen[key] {
				return refuse(class.path+"."+strconv.Itoa(i), w, "a label that is not blank and in neither list already")
			}
			seen[key] = true
		}
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
	classes map[string]float64 // nil for regression
	affine  affine
}

func compileLabel(s *Spec) labelMap {
	m := labelMap{column: s.Label.Column}
	if m.column == "" {
		m.column = "label"
	}
	if !s.Classification() {
		m.affine = newAffine(s.Label.Min, s.Label.Max, s.Label.Scale)
		return m
	}
	m.classes = make(map[string]float64)
	for _, w := range s.Label.Positive {
		m.classes[classKey(w)] = 1
	}
	for _, w := range s.Label.Negative {
		m.classes[classKey(w)] = -1
	}
	return m
}

// parse returns the label for the loss: -1 or +1, or the scaled number.
func (m *labelMap) parse(text string) (float64, error) {
	if m.classes != nil {
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
	return m.affine.apply(v), nil
}
