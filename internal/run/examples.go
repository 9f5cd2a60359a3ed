package run

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// LoadExamples maps every row of a file or pattern of files, for simulations. A row that does not fit the declaration
// becomes an example without features and with NaN as its label, which report.Exact turns into the zero vector, as on a
// device. The positions of those rows come beside them, in order, and unfit is called with the reason.
func LoadExamples(features *task.FeatureMap, path string, unfit func(*task.RowError)) (examples []convex.Example,
	invalid []int, err error) {
	rows, err := source.OpenFitting(path, features)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var (
		scratch convex.Example
		bad     *task.RowError
	)
	for row, err := range rows.All() {
		if err == nil {
			err = features.Map(row, &scratch)
		}
		switch {
		case errors.As(err, &bad):
			unfit(bad)
			invalid = append(invalid, len(examples))
			examples = append(examples, convex.Example{Index: []int32{}, Label: math.NaN()})
		case err != nil:
			return nil, nil, err
		default:
			examples = append(examples, convex.Example{
				Index: slices.Clone(scratch.Index), Value: slices.Clone(scratch.Value), Label: scratch.Label,
				Offset: scratch.Offset})
		}
	}
	return examples, invalid, nil
}

// namedRows bounds the rows that do not fit the declaration and are named one by one.
const namedRows = 10

// NameRows returns a function that prints the line and column of the first rows that do not fit.
func NameRows(to io.Writer, what string) func(*task.RowError) {
	named := 0
	return func(bad *task.RowError) {
		if named++; named <= namedRows {
			fmt.Fprintf(to, "%s: %v\n", what, bad)
		}
	}
}
