package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/panlearn/panlearn/learner/task"
)

// A setting is overrides of a task file: keys and values in JSON. The empty one is the task as it is.
type setting map[string]json.RawMessage

// Sets returns the overrides as task.Parse takes them, in the order of the keys.
func (s setting) Sets() (out []string) {
	for key, value := range s {
		out = append(out, key+"="+string(value))
	}
	slices.Sort(out)
	return out
}

// String shows the overrides in one line.
func (s setting) String() string {
	if len(s) == 0 {
		return "as it is"
	}
	var text string
	for i, set := range s.Sets() {
		if i > 0 {
			text += " "
		}
		text += set
	}
	return text
}

// one returns a setting of one key.
func one(key string, value any) setting {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err.Error()) // numbers and lists of names
	}
	return setting{key: text}
}

// mostCrossed bounds the indicators that crosses may add, for each coordinate that is there.
const mostCrossed = 4

// crosses switches the task's crosses off, or on if it has none: all pairs of columns of indicators, pairs with the
// fewest combinations first, as long as they add at most mostCrossed times as many coordinates as there are.
func crosses(spec *task.Spec, dim int) (setting, bool) {
	f := spec.Features
	if len(f.Crosses) > 0 {
		out := one("features.crosses", []task.Cross{})
		for i, c := range f.Columns {
			if c.Hidden && slices.ContainsFunc(f.Crosses, func(x task.Cross) bool {
				if c.Kind.Number() {
					return x.Number == c.Name && !derived(f, c.Name)
				}
				return slices.Contains(x.Columns, c.Name)
			}) {
				out[fmt.Sprintf("features.columns.%d.hidden", i)] = json.RawMessage("false")
			}
		}
		return out, true
	}
	type pair struct {
		columns []string
		width   int
	}
	var pairs []pair
	for i, a := range f.Columns {
		for _, b := range f.Columns[:i] {
			if n := indicators(a) * indicators(b); n > 0 {
				pairs = append(pairs, pair{[]string{b.Name, a.Name}, n})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return a.width - b.width })
	var list []task.Cross
	room := mostCrossed * dim
	for _, p := range pairs {
		if room -= p.width; room < 0 {
			break
		}
		list = append(list, task.Cross{Columns: p.columns})
	}
	return one("features.crosses", list), len(list) > 0
}

// derived reports whether products or Fourier features are made from a numeric column.
func derived(f task.Features, name string) bool {
	return f.Polynomial != nil && slices.Contains(f.Polynomial.Columns, name) ||
		f.Fourier != nil && slices.Contains(f.Fourier.Columns, name)
}

// indicators returns the number of indicators that a column makes; 0 for a number.
func indicators(c task.Column) int {
	switch c.Kind {
	case task.Categorical:
		if c.Unknown == task.Other {
			return len(c.Vocabulary) + 1
		}
		return len(c.Vocabulary)
	case task.Hashed:
		return c.Buckets
	case task.Bucketed:
		return len(c.Edges) + 1
	case task.OneHot:
		return len(c.Columns)
	}
	return 0
}

// tidy rounds a positive number to two digits: a setting that was chosen by noise deserves no more.
func tidy(x float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	if err != nil || math.IsInf(out, 0) {
		return x
	}
	return out
}
