package tune

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/draft"
)

// knots is the number of knots that each number has in a task that tries hats.
const knots = 8

// columns sets all numbers of the table to hats, and those that are skewed to their logarithm. Numbers with missing
// values of their own, or that something else is made of, stay as they are.
func (t table) columns(base run.Job) (out []setting) {
	hats, logs := setting{}, setting{}
	of := map[string]int{} // coordinate of a column
	for j, c := range base.Features.Coordinates() {
		if c.Kind == string(task.Numeric) && c.Column != "" && c.Part == "" && c.Over == "" {
			of[c.Column] = j
		}
	}
	numbers := t.numbers(base.Features, of)
	for i, c := range base.Spec.Features.Columns {
		values, ok := numbers[c.Name]
		if !ok || c.Kind != task.Numeric || c.Scale == task.Log || c.Field != "" || c.Missing.Indicator ||
			len(c.Missing.Tokens) > 0 || used(&base.Spec.Features, c.Name) {
			continue
		}
		key := fmt.Sprintf("features.columns.%d", i)
		if unit, mean, std, skewed := draft.LogScale(values); skewed {
			logs[key] = one("", task.Column{Name: c.Name, Kind: task.Numeric, Scale: task.Log, Unit: unit, Mean: rounded(mean),
				Std: rounded(std), Marks: c.Marks})[""]
		}
		slices.Sort(values)
		at := draft.Knots(values, knots)
		for k := range at {
			at[k] = rounded(at[k])
		}
		if at = slices.Compact(at); len(at) > 1 {
			hats[key] = one("", task.Column{Name: c.Name, Kind: task.Hats, Knots: at, Marks: c.Marks})[""]
		}
	}
	for _, s := range []setting{hats, logs} {
		if len(s) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// numbers returns the values of columns in the units of the data, given their coordinates.
func (t table) numbers(m *task.FeatureMap, of map[string]int) map[string][]float64 {
	out := make(map[string][]float64, len(of))
	for k := range t {
		row := t.dense(k, m.Dim())
		for name, j := range of {
			c := m.Coordinates()[j]
			out[name] = append(out[name], (row[j]-c.Offset)/c.Factor)
		}
	}
	return out
}

// rounded keeps as many digits as a person would write.
func rounded(x float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return out
}

// used reports whether anything but a coordinate of its own is made of a number.
func used(f *task.Features, name string) bool {
	return f.Public != nil || f.Polynomial != nil && slices.Contains(f.Polynomial.Columns, name) ||
		f.Fourier != nil && slices.Contains(f.Fourier.Columns, name) || slices.ContainsFunc(f.Columns,
		func(c task.Column) bool { return c.Name == name && !c.Kind.Number() }) ||
		slices.ContainsFunc(f.Crosses, func(x task.Cross) bool { return x.Number == name })
}
