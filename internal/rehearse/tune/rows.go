package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// Rows provides the rows on which settings are compared.
type Rows interface {
	// Map returns the rows as the features of a setting see them.
	Map(*task.Spec) (Mapped, error)
	// Data reports whether the rows are data, rather than made up from the declaration. Their training parts
	// overlap from seed to seed.
	Data() bool
}

// Mapped rows are split for every seed.
type Mapped interface {
	// Split returns the rows of n users, and others to score on.
	Split(seed uint64, n int) (train, test []convex.Example, err error)
}

// holdout is the share of data that is scored on: one row of holdout.
const holdout = 5

// Share of the rows of data that are scored on, over the share that is learned from: what the corrected test wants,
// see better.
const heldOutOver = 1.0 / (holdout - 1)

// Public is data that everybody may see.
type Public struct {
	// Load maps all rows. The positions of those that do not fit come beside them, in order.
	Load func(*task.Spec) (rows []convex.Example, unfit []int, err error)
}

// Data returns true.
func (Public) Data() bool { return true }

// Map reads the data.
func (p Public) Map(spec *task.Spec) (Mapped, error) {
	rows, unfit, err := p.Load(spec)
	if err != nil {
		return nil, err
	}
	if len(rows) < 2*holdout || len(unfit) == len(rows) {
		return nil, fmt.Errorf("%d rows, of which %d do not fit the declaration: too few to hold some out", len(rows),
			len(unfit))
	}
	return public{rows, unfit}, nil
}

type public struct {
	rows  []convex.Example
	unfit []int
}

// Split holds rows out at random. The others stay in their order, and are repeated where there are fewer than
// users. A row that does not fit takes part, as on a device, and is not scored on.
func (p public) Split(seed uint64, n int) (train, test []convex.Example, err error) {
	out := make([]bool, len(p.rows))
	for _, i := range rand.New(sim.Entropy(seed, "holdout")).Perm(len(p.rows))[:len(p.rows)/holdout] {
		out[i] = true
	}
	for i, row := range p.rows {
		if !out[i] {
			train = append(train, row)
		} else if _, bad := slices.BinarySearch(p.unfit, i); !bad {
			test = append(test, row)
		}
	}
	if len(test) == 0 {
		return nil, nil, fmt.Errorf("none of the rows that were held out fits the declaration")
	}
	for len(train) < n {
		train = append(train, train[:min(len(train), n-len(train))]...)
	}
	return train, test, nil
}

// norm returns the quantile of the rows' norms, the intercept left out.
func (p public) norm(quantile, intercept float64) float64 {
	norms := make([]float64, len(p.rows))
	for i, row := range p.rows {
		norms[i] = convex.Norm(row.Value)
	}
	slices.Sort(norms)
	n := norms[int(quantile*float64(len(norms)-1))]
	return math.Sqrt(max(0, n*n-intercept*intercept))
}

// madeUp is the number of a schema's rows that are scored on.
const madeUp = 10000

// Schema is rows of the declaration.
type Schema struct{ *sim.Schema }

// Data returns false.
func (Schema) Data() bool { return false }

// Map draws nothing yet.
func (s Schema) Map(spec *task.Spec) (Mapped, error) {
	features, err := spec.Compile()
	return schema{s.Schema, features}, err
}

type schema struct {
	of       *sim.Schema
	features *task.FeatureMap
}

// Split draws fresh rows for every seed.
func (s schema) Split(seed uint64, n int) (train, test []convex.Example, err error) {
	rows, err := s.of.Rows(s.features, n+madeUp, seed)
	if err != nil {
		return nil, nil, err
	}
	return rows[madeUp:], rows[:madeUp], nil
}
