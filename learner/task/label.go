package task

import (
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
