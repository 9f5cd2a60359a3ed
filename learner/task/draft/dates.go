package draft

import (
	"maps"
	"slices"

	"github.com/panlearn/panlearn/learner/task"
)

// datedPart is a part of dates that is worth coordinates, with the keys that make them.
type datedPart struct {
	part  task.Part
	entry []field
	width int
}

// datedParts are the parts that come again; a year never does.
var datedParts = []datedPart{
	{task.Hour, []field{{"kind", string(task.Hats)}, {"knots", "[0, 6, 12, 18, 24]"}}, 5},
	{task.Weekday, []field{{"kind", string(task.Bucketed)}, {"edges", "[2, 3, 4, 5, 6, 7]"}}, 7},
	{task.Month, []field{{"kind", string(task.Hats)}, {"knots", "[1, 4, 7, 10, 12]"}}, 5},
}

// addDate counts a cell that is a date as tasks read dates.
func (c *column) addDate(cell string) {
	for i, d := range datedParts {
		x, missing, err := task.PartOf(cell, d.part)
		if err != nil {
			return
		}
		if missing {
			continue
		}
		if at := &c.parts[i]; at.n == 0 {
			*at = spread{1, x, x}
		} else {
			*at = spread{at.n + 1, min(at.low, x), max(at.high, x)}
		}
	}
	c.iso++
}

// A spread is of numbers that were counted.
type spread struct {
	n         int
	low, high float64
}

// dateFeatures makes features of the parts that differ by 1 or more in the sample, if every value is a date that tasks
// read.
func (c *column) dateFeatures() (out []feature) {
	if n := c.present(); c.iso < n || c.foreign > 0 {
		return nil
	}
	for i, d := range datedParts {
		if at := c.parts[i]; at.n < c.iso || at.high-at.low < 1 {
			continue
		}
		entry := append([]field{{"column", text(string(d.part) + " of " + c.name)}, {"field", text(c.name)},
			{"part", string(d.part)}}, d.entry...)
		words := slices.DeleteFunc(slices.Sorted(maps.Keys(c.missing)), func(w string) bool { return w == "" })
		if len(words) > 0 {
			entry = append(entry, field{"missing", mapping([]field{{"tokens", texts(words)}})})
		}
		out = append(out, feature{column: c, entry: entry, width: d.width})
	}
	return out
}
