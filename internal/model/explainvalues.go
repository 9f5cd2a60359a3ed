package model

import (
	"math"
	"slices"
	"strconv"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A valued holds a declared value and what it contributes to each score.
type valued struct {
	value string
	parts []float64
}

// declared maps the values that the declaration lists, and returns by group what each contributes. All other fields
// are as in a row that has every value; of vectors they are 0.
func (e *explainer) declared() map[string][]valued {
	schema, out := e.Features.Schema(), map[string][]valued{}
	if v := e.spec.Features.Vector; v != nil && len(e.groups) == v.Dimension {
		e.bounds(v, out)
	}
	if len(schema.Columns) == 0 {
		return out
	}
	values := e.values()
	var example convex.Example
	parts := e.table()
	for g, group := range e.groups {
		at := slices.Index(schema.Columns, group.column)
		if group.column == "" || at < 0 {
			continue
		}
		row := e.Features.Decoy()
		row.Fields = slices.Clone(row.Fields)
		for _, text := range values[group.column] {
			row.Fields[at] = text
			if e.Features.Map(row, &example) != nil {
				continue
			}
			e.add(parts, example)
			out[group.column] = append(out[group.column], valued{text, slices.Clone(parts[g])})
		}
	}
	return out
}

// bounds adds what each coordinate of a vector contributes at its bounds, or at 0 and 1.
func (e *explainer) bounds(v *task.Vector, out map[string][]valued) {
	low, high := v.Min, v.Max
	if v.Kind == task.Indicator {
		low, high = 0, 1
	}
	var example convex.Example
	dim := e.Features.Dim()
	for j, g := range e.groups {
		for _, x := range []float64{low, high} {
			row := task.Row{Index: []int32{int32(j)}, Value: []float64{x}}
			if x == 0 {
				row.Index, row.Value = []int32{}, nil
			}
			if e.Features.Map(row, &example) != nil {
				continue
			}
			parts := make([]float64, e.Features.Outputs())
			for k := range parts {
				parts[k] = e.unit * e.Theta[k*dim+j] * at(example, j)
			}
			if len(e.classes) > 0 {
				centre(parts)
			}
			out[g.name] = append(out[g.name], valued{strconv.FormatFloat(x, 'g', 6, 64), parts})
		}
	}
}

// at returns one coordinate of an example.
func at(x convex.Example, j int) float64 {
	if x.Index == nil {
		return x.Value[j]
	}
	if i, ok := slices.BinarySearch(x.Index, int32(j)); ok {
		return x.Value[i]
	}
	return 0
}

// gridPoints counts the values of a number between its bounds that are looked at.
const gridPoints = 33

// values lists the declared values of each column that is read from a field of its own name.
func (e *explainer) values() map[string][]string {
	out := map[string][]string{}
	for _, c := range e.spec.Features.Columns {
		if c.Hidden || c.Field != "" || c.Over != "" {
			continue
		}
		var numbers []float64
		switch c.Kind {
		case task.Numeric:
			numbers = grid(c)
		case task.Indicator:
			numbers = []float64{0, 1}
		case task.Hats:
			numbers = c.Knots
		case task.Bucketed:
			numbers = append([]float64{math.Nextafter(c.Edges[0], math.Inf(-1))}, c.Edges...)
		case task.Categorical:
			out[c.Name] = append(out[c.Name], c.Vocabulary...)
			if c.Unknown == task.Other {
				out[c.Name] = append(out[c.Name], outside(c.Vocabulary))
			}
		}
		for _, x := range numbers {
			out[c.Name] = append(out[c.Name], strconv.FormatFloat(x, 'g', 6, 64))
		}
	}
	return out
}

// outside returns a word that is not in a vocabulary.
func outside(vocabulary []string) string {
	word := "(any other word)"
	for slices.Contains(vocabulary, word) {
		word += "*"
	}
	return word
}

// grid returns values between the bounds of a number.
func grid(c task.Column) []float64 {
	low, high := c.Min, c.Max
	if c.Std > 0 {
		low, high = c.Mean-c.Clip*c.Std, c.Mean+c.Clip*c.Std
	}
	out := make([]float64, gridPoints)
	for i := range out {
		x := low + (high-low)*float64(i)/(gridPoints-1)
		if c.Unit > 0 {
			x = task.FromLog(x, c.Unit)
		}
		out[i] = x
	}
	return out
}
