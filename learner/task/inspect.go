package task

import (
	"errors"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// An Inspection describes how one row fits a declaration, field by field. It reveals a single event without any noise:
// show it only to people who may see the data.
type Inspection struct {
	Columns []Finding // one for each column of the schema; for libsvm and idx one for all values
	Label   Finding
	Reason  *RowError // why the row is invalid; nil if it is valid

	// Norm is the norm of the vector before it is scaled down to the norm bound, and Y the label as the loss sees it. Both
	// are set for valid rows only.
	Norm float64
	Y    float64

	free    *FeatureMap // without a norm bound
	example convex.Example
}

// A Finding describes how a field is read.
type Finding struct {
	Invalid bool // the field makes the row invalid
	Clamped bool // the number is moved into its bounds
	Missing bool // the value is declared as missing or looks missing: blank, or one of MissingWords

	// Unlisted reports whether the value is a word outside the vocabulary that does not look missing. It is dropped or
	// counts as another word.
	Unlisted bool
}

// missingWords are the texts, besides a blank, that are commonly written for a missing value.
var missingWords = []string{"?", "NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "-", "--", "."}

// MissingWords returns the texts, besides a blank, that are commonly written for a missing value. A task may declare
// them as tokens.
func MissingWords() []string { return slices.Clone(missingWords) }

// Inspect overwrites i with a description of how Map reads the row.
func (m *FeatureMap) Inspect(row Row, i *Inspection) {
	if i.free == nil {
		free := *m
		free.longest, free.bound = maxNorm, maxNorm
		i.free, i.Columns = &free, make([]Finding, max(1, len(m.schema.Columns)))
	}
	clear(i.Columns)
	i.Label, i.Reason = Finding{}, nil
	for k := range m.inputs {
		if in := &m.inputs[k]; len(row.Fields) == len(m.schema.Columns) {
			in.find(row.Fields, i.Columns)
		}
	}
	if m.vector != nil {
		i.Columns[0] = m.vector.find(row)
	}
	fault := i.free.Map(row, &i.example)
	y, err := m.LabelMap.parse(row.Label, i.example.Offset)
	i.Label = Finding{Invalid: err != nil, Missing: strings.TrimSpace(row.Label) == "", Clamped: err == nil &&
		m.LabelMap.clamps(row.Label, i.example.Offset)}
	i.Y = y
	if fault != nil {
		errors.As(fault, &i.Reason)
		return
	}
	features := i.example.Value
	if m.intercept != 0 {
		features = features[:len(features)-1]
	}
	i.Norm = convex.Norm(features)
}

func (f *Finding) add(other Finding) {
	f.Invalid, f.Clamped, f.Missing = f.Invalid || other.Invalid, f.Clamped || other.Clamped, f.Missing || other.Missing
	f.Unlisted = f.Unlisted || other.Unlisted
}

// find adds findings about the input's fields to the findings of all fields.
func (in *input) find(fields []string, all []Finding) {
	_, missing, err := in.value(fields)
	for _, at := range in.fields {
		field := strings.TrimSpace(fields[at])
		f := Finding{Invalid: err != nil, Missing: missing}
		x, blank, wrong := in.number(field)
		switch _, word := in.index[field]; {
		case in.Kind == OneHot: // of several fields: marks those that are wrong, or all ones if there are several
			f.Invalid = wrong != nil || err != nil && !blank && x >= 0.5
			f.Missing = blank || wrong != nil && looksMissing(field)
		case !word:
			f.Missing = missing || looksMissing(field)
			f.Unlisted = in.Kind == Categorical && err == nil && !f.Missing
		}
		if in.Over != "" {
			x, blank, wrong = in.quantity(fields)
		}
		f.Clamped = wrong == nil && !blank && in.clamps(x)
		all[at].add(f)
	}
}

// clamps reports whether a number is moved into the bounds of the input's kind.
func (in *input) clamps(x float64) bool {
	low, high := 0.0, 1.0
	switch in.Kind {
	case Numeric, Indicator:
		return !in.affine.within(x)
	case OneHot:
	case Hats:
		low, high = in.Knots[0], in.Knots[len(in.Knots)-1]
	default:
		return false
	}
	return x < low || x > high
}

// find returns one Finding about all values of a vector.
func (m *vectorMap) find(row Row) Finding {
	f := Finding{Invalid: m.values(row, make([]float64, len(row.Value))) != nil}
	for _, x := range row.Value {
		f.Clamped = f.Clamped || x < m.affine.low || x > m.affine.high
	}
	return f
}

// clamps reports whether a label that is a number or a count is moved into its bounds.
func (m *LabelMap) clamps(label string, offset float64) bool {
	if m.kind.Classes() {
		return false
	}
	y, err := m.number(label)
	y -= offset
	return err == nil && (y < m.low || y > m.high)
}

func looksMissing(field string) bool { return field == "" || slices.Contains(missingWords, field) }
