package rehearse

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Source draws the rows on which variants of a task are compared: the same for all variants of a seed.
type Source interface {
	// Draw returns the rows of at least n units, of so many items each, and rows to score on.
	Draw(seed uint64, n, items int) (Sample, error)
	// Data reports whether the rows are data, rather than made up from the declaration. Their training parts
	// overlap from seed to seed, see Overlap.
	Data() bool
}

// A Sample is the rows of one seed.
type Sample struct {
	Units [][]convex.Example // to learn from, by the unit of the task
	// Silos are the units of each organisation; nil: equal parts of Units.
	Silos [][][]convex.Example
	Test  []convex.Example
}

// Rows returns the rows of all units, one after another.
func (s Sample) Rows() []convex.Example { return slices.Concat(s.Units...) }

const (
	Holdout = 5     // data: one unit of so many is scored on
	madeUp  = 10000 // rows of a declaration that are scored on
)

// Overlap is the rows of data that are scored on, over those that are learned from.
const Overlap = 1.0 / (Holdout - 1)

// MadeUp makes rows up from a declaration, with labels of a planted model: see sim.Schema. Rows of a unit are
// independent.
type MadeUp struct {
	Spec       *task.Spec
	Features   *task.FeatureMap
	Population *sim.Schema // nil: another one of Spec for every seed
}

// Data returns false.
func (MadeUp) Data() bool { return false }

// Draw makes rows up.
func (m MadeUp) Draw(seed uint64, n, items int) (Sample, error) {
	population := m.Population
	if population == nil {
		var err error
		if population, err = sim.NewSchema(m.Spec, seed); err != nil {
			return Sample{}, err
		}
	}
	rows, err := population.Rows(m.Features, madeUp+n*items, seed)
	if err != nil {
		return Sample{}, err
	}
	return Sample{Test: rows[:madeUp], Units: slices.Collect(slices.Chunk(rows[madeUp:], items))}, nil
}

// Public is data that everybody may see.
type Public struct {
	Rows  []convex.Example
	Units [][]int // the rows of each unit, in the order of the file; nil: each row is one
	Silos [][]int // the units of each organisation, as data were split; nil: equal parts of the file
	Unfit []int   // rows that do not fit the declaration, in order: they take part, as on a device, and are not scored on
}

// Data returns true.
func (Public) Data() bool { return true }

// Draw holds units out at random. The others stay in their order, and are repeated where there are fewer than n.
func (p Public) Draw(seed uint64, n, _ int) (out Sample, err error) {
	units := len(p.Units)
	if p.Units == nil {
		units = len(p.Rows)
	}
	test := make([]bool, units)
	for _, i := range rand.New(sim.Entropy(seed, "holdout")).Perm(units)[:units/Holdout] {
		test[i] = true
	}
	for i := range units {
		if !test[i] {
			out.Units = append(out.Units, p.unit(i))
			continue
		}
		for _, k := range p.places(i) {
			if _, bad := slices.BinarySearch(p.Unfit, k); !bad {
				out.Test = append(out.Test, p.Rows[k])
			}
		}
	}
	if len(out.Test) < 2 || len(out.Units) == 0 {
		return out, p.tooFew()
	}
	out.Units = Repeated(out.Units, n)
	for i, at := range p.Silos {
		var units [][]convex.Example
		for _, k := range at {
			if !test[k] {
				units = append(units, p.unit(k))
			}
		}
		if len(units) == 0 {
			return out, fmt.Errorf("silo %d has %d units: too few to hold some out", i+1, len(at))
		}
		out.Silos = append(out.Silos, units)
	}
	return out, nil
}

// Validate refuses data of which none could be held out and scored on.
func (p Public) Validate() error {
	if len(p.Rows) < 2*Holdout || len(p.Unfit) == len(p.Rows) {
		return p.tooFew()
	}
	return nil
}

func (p Public) tooFew() error {
	return fmt.Errorf("%d rows, of which %d do not fit the declaration: too few to hold some out", len(p.Rows), len(p.Unfit))
}

// places returns the numbers of the rows of a unit.
func (p Public) places(i int) []int {
	if p.Units == nil {
		return []int{i}
	}
	return p.Units[i]
}

func (p Public) unit(i int) (rows []convex.Example) {
	for _, k := range p.places(i) {
		rows = append(rows, p.Rows[k])
	}
	return rows
}

// Repeated returns at least n units: it repeats the units where there are fewer.
func Repeated(units [][]convex.Example, n int) [][]convex.Example {
	for len(units) < n {
		units = append(units[:len(units):len(units)], units[:min(len(units), n-len(units))]...)
	}
	return units
}

// ReadPublic maps the public rows of data, in the order of the file, and prints rows that do not fit to progress.
func ReadPublic(spec *task.Spec, data Data, progress io.Writer) (Public, error) {
	features, err := data.features(spec)
	if err != nil {
		return Public{}, err
	}
	rows, unfit, err := run.LoadExamples(features, data.Path, func(*task.RowError) {})
	if err != nil {
		return Public{}, err
	}
	if len(unfit) > 0 {
		fmt.Fprintf(progress,
			"%d of %d rows of %s do not fit the declaration; they report the zero vector, and are not scored on\n", len(unfit),
			len(rows), data.Path)
	}
	return Public{Rows: rows, Unfit: unfit}, nil
}

// Group makes the units of public data: rows, or the people of a task that protects users. split says how the silos
// of the task are made of rows; people come in the order of the file.
func (p Public) Group(spec *task.Spec, data Data, split string) (Public, error) {
	features, err := data.features(spec)
	if err != nil {
		return p, err
	}
	if !spec.Privacy.ByUser() {
		if split == sim.SplitBlocks {
			return p, nil
		}
		var of []string
		if sim.SplitNames(split) {
			if of, err = splitNames(data.Path, features, split, nil); err != nil {
				return p, err
			}
		}
		if p.Silos, err = sim.Silos(split, spec.Silo.Count, p.Rows, of); err != nil {
			return p, fmt.Errorf("--%w", err)
		}
		return p, nil
	}
	users, err := names(data.Path, features, spec.User.Column, true, nil)
	if err != nil {
		return p, err
	}
	people := block.People[int]{ID: func(i int) string { return users[i] }, Items: spec.User.Items, Most: math.MaxInt}
	all := func(yield func(int, error) bool) {
		for i := range users {
			if !yield(i, nil) {
				return
			}
		}
	}
	p.Units = [][]int{}
	for one := range people.Collected(all) {
		p.Units = append(p.Units, one.Rows)
	}
	return p, nil
}
