package tune

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// Rows provides the rows on which settings are compared.
type Rows interface {
	// Map returns the rows as the features of a setting see them.
	Map(*task.Spec) (rehearse.Source, error)
	// Data reports whether the rows are data, as rehearse.Source does.
	Data() bool
}

// Public is data that everybody may see.
type Public struct {
	// Load maps all rows.
	Load func(*task.Spec) (rehearse.Public, error)
}

// Data returns true.
func (Public) Data() bool { return true }

// Map reads the data.
func (p Public) Map(spec *task.Spec) (rehearse.Source, error) {
	rows, err := p.Load(spec)
	if err == nil {
		err = rows.Validate()
	}
	return rows, err
}

// A table is rows of data, as the features of the task see them.
type table []convex.Example

// norm returns the quantile of the rows' norms, the intercept left out.
func (t table) norm(quantile, intercept float64) float64 {
	norms := make([]float64, len(t))
	for i, row := range t {
		norms[i] = convex.Norm(row.Value)
	}
	slices.Sort(norms)
	n := norms[int(quantile*float64(len(norms)-1))]
	return math.Sqrt(max(0, n*n-intercept*intercept))
}

// Schema is rows of the declaration, of one population.
type Schema struct{ *sim.Schema }

// Data returns false.
func (Schema) Data() bool { return false }

// Map draws nothing yet.
func (s Schema) Map(spec *task.Spec) (rehearse.Source, error) {
	features, err := spec.Compile()
	return rehearse.MadeUp{Population: s.Schema, Features: features}, err
}
