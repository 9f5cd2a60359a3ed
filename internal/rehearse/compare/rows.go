package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// Rows provides the rows on which lines are compared: the same for all lines of a seed.
type Rows interface {
	// Draw returns the rows of n units, each unit's together, and rows to score on.
	Draw(seed uint64, n, items int) (Sample, error)
	// Data reports whether the rows are data, rather than made up from the declaration. Their training parts
	// overlap from seed to seed.
	Data() bool
}

// A Sample is the rows of one seed.
type Sample struct {
	Units [][]convex.Example // to learn from, by the unit of the task
	// Silos are the units of each organisation; nil: equal parts of Units.
	Silos [][][]convex.Example
	Test  []convex.Example
}

const (
	holdout = 5     // data: one unit of so many is scored on
	madeUp  = 10000 // rows of a declaration that are scored on
)

// overlap is the rows of data that are scored on, over those that are learned from.
const overlap = 1.0 / (holdout - 1)

// A Schema makes rows up, of another population for every seed, with labels of a planted model: see sim.Schema. A
// person's rows are independent.
type Schema struct {
	Spec     *task.Spec
	Features *task.FeatureMap
}

// Data returns false.
func (Schema) Data() bool { return false }

// Draw makes rows up.
func (s Schema) Draw(seed uint64, n, items int) (Sample, error) {
	population, err := sim.NewSchema(s.Spec, seed)
	if err != nil {
		return Sample{}, err
	}
	rows, err := population.Rows(s.Features, madeUp+n*items, seed)
	if err != nil {
		return Sample{}, err
	}
	out := Sample{Test: rows[:madeUp]}
	for rows = rows[madeUp:]; len(rows) >= items; rows = rows[items:] {
		out.Units = append(out.Units, rows[:items])
	}
	return out, nil
}

// Public is data that everybody may see.
type Public struct {
	Rows  []convex.Example
	Units [][]int // the rows of each unit, in the order of the file: one row, or those of a person up to user.items
	Silos [][]int // the units of each organisation, as data were split; nil: equal parts of the file
	Unfit []int   // rows that do not fit the declaration, in order: they take part, as on a device, and are not scored on
}

// Data returns true.
func (Public) Data() bool { return true }

// Draw holds units out at random. The others stay in their order, and are repeated where there are fewer than n.
func (p Public) Draw(seed uint64, n, _ int) (out Sample, err error) {
	test := make([]bool, len(p.Units))
	for _, i := range rand.New(sim.Entropy(seed, "holdout")).Perm(len(p.Units))[:len(p.Units)/holdout] {
		test[i] = true
	}
	for i, at := range p.Units {
		var unit []convex.Example
		for _, k := range at {
			if _, bad := slices.BinarySearch(p.Unfit, k); !test[i] {
				unit = append(unit, p.Rows[k])
			} else if !bad {
				out.Test = append(out.Test, p.Rows[k])
			}
		}
		if !test[i] {
			out.Units = append(out.Units, unit)
		}
	}
	if len(out.Test) < 2 || len(out.Units) == 0 {
		return out, fmt.Errorf("%d rows, of which %d do not fit the declaration: too few to hold some out", len(p.Rows),
			len(p.Unfit))
	}
	out.Units = repeated(out.Units, n)
	for i, at := range p.Silos {
		var units [][]convex.Example
		for _, k := range at {
			if test[k] {
				continue
			}
			var unit []convex.Example
			for _, row := range p.Units[k] {
				unit = append(unit, p.Rows[row])
			}
			units = append(units, unit)
		}
		if len(units) == 0 {
			return out, fmt.Errorf("silo %d has %d units: too few to hold some out", i+1, len(at))
		}
		out.Silos = append(out.Silos, units)
	}
	return out, nil
}

// repeated returns at least n units: it repeats the units where there are fewer.
func repeated(units [][]convex.Example, n int) [][]convex.Example {
	for len(units) < n {
		units = append(units[:len(units):len(units)], units[:min(len(units), n-len(units))]...)
	}
	return units
}
