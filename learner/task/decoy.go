package task

import (
	"slices"
	"strings"
)

// Decoy returns an artificial row of the declared shape without missing values. Mapping it takes at least as long as
// mapping any row: its label is one that takes the longest to read.
func (m *FeatureMap) Decoy() Row {
	if m.vector != nil {
		row := Row{Value: make([]float64, m.vector.dimension), Label: m.LabelMap.decoy()}
		for i := range row.Value {
			row.Value[i] = 1
		}
		return row
	}
	row := Row{Fields: make([]string, len(m.schema.Columns)), Label: m.LabelMap.decoy()}
	for i := range row.Fields {
		row.Fields[i] = "1" // a number, or a word
	}
	for i := range m.inputs {
		in := &m.inputs[i]
		if in.Part != "" {
			row.Fields[in.fields[0]] = slowestDate
		}
		if len(in.Marks) > 0 {
			for _, f := range in.fields {
				row.Fields[f] = mostMarked(m.inputs.marks(f))
			}
		}
		switch in.Kind {
		case Categorical:
			if len(in.Vocabulary) > 0 {
				row.Fields[in.fields[0]] = in.Vocabulary[0]
			}
		case Text:
			row.Fields[in.fields[0]] = longestText(in.Words)
		case Hashed:
			row.Fields[in.fields[0]] = strings.Repeat("w", m.schema.Events.MaxLine)
		case OneHot:
			for _, f := range in.fields[1:] {
				row.Fields[f] = "0"
			}
		}
	}
	return row
}

// marks returns the marks that every input of a field leaves out. A field may be listed twice, with different marks.
func (all inputs) marks(field int) (shared []string) {
	first := true
	for i := range all {
		in := &all[i]
		if !slices.Contains(in.fields, field) {
			continue
		}
		if first {
			shared, first = slices.Clone(in.Marks), false
		}
		shared = slices.DeleteFunc(shared, func(mark string) bool { return !slices.Contains(in.Marks, mark) })
	}
	return shared
}

// decoy returns a label that takes as long to read as any.
func (m *LabelMap) decoy() string {
	switch {
	case m.kind.Classes():
		return m.names[0]
	case len(m.marks) > 0:
		return mostMarked(m.marks)
	}
	return "1"
}
