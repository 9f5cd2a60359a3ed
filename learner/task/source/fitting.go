package source

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// fittingWindow is the number of events at the beginning none of which fits before OpenFitting refuses the
// data.
const fittingWindow = 16

// A peek is an event that was read ahead: its row or its error.
type peek struct {
	row task.Row
	err error
}

// OpenFitting is like Open, for public or local data that are not sent: it looks at the first two to
// fittingWindow events, and refuses the data if none of them fits, or none has a declared column. No event
// needs a key there.
func OpenFitting(path string, m *task.FeatureMap) (*Reader, error) {
	schema := m.Schema()
	schema.Events.Key = ""
	r, err := openData(path, schema)
	if err != nil {
		return nil, err
	}
	return fitting(path, r, m)
}

// OpenNamed is like Open, for public or local data. It takes the User of each row from a column: a feature, the
// label, or one that the task does not read. Empty, no row has one. No event needs a key there.
func OpenNamed(path string, m *task.FeatureMap, column string) (*Reader, error) {
	schema := m.Schema()
	schema.Events.Key, schema.User = "", column
	return openData(path, schema)
}

// fitting reads until an event fits and each declared column was in one.
func fitting(path string, r *Reader, m *task.FeatureMap) (*Reader, error) {
	var first error // of the first event, which is the most informative
	fits := false
	for {
		row, err := r.read()
		if err == nil {
			err = m.Map(row, &convex.Example{})
		}
		var bad *task.RowError
		switch invalid := errors.As(err, &bad); {
		case err == nil && len(r.Unknown()) == 0 || err == io.EOF && len(r.peeked) < 2:
			r.peeked = append(r.peeked, peek{row, err})
			return r, nil
		case err == nil:
			fits, row.Fields = true, slices.Clone(row.Fields) // only rows with fields have columns that are unknown
			r.peeked = append(r.peeked, peek{row, nil})
		case !invalid && err != io.EOF:
			return nil, errors.Join(err, r.Close())
		case invalid:
			if first == nil {
				first = bad
			}
			r.peeked = append(r.peeked, peek{task.Row{Line: row.Line, Number: row.Number, File: row.File, User: row.User}, err})
		}
		if err == io.EOF || len(r.peeked) == fittingWindow {
			if fits {
				first = fmt.Errorf("none of the first %d events has the key %q", len(r.peeked), r.Unknown()[0])
			}
			return nil, errors.Join(&SchemaError{Path: path, Err: first}, r.Close())
		}
	}
}
