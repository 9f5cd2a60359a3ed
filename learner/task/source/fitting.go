package source

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// fittingWindow is how many events in a row must not fit before OpenFitting refuses data that have begun so.
const fittingWindow = 16

// A peek is an event that was read ahead: its row or its error.
type peek struct {
	row task.Row
	err error
}

// OpenFitting is Open for public or local data, of which nothing is sent: it looks at the first events, and refuses data of which none
// fits, or none has a declared column, of two to fittingWindow events. No event needs a key there.
func OpenFitting(path string, m *task.FeatureMap) (*Reader, error) {
	schema := m.Schema()
	schema.Events.Key = ""
	r, err := openData(path, schema)
	if err != nil {
		return nil, err
	}
	return fitting(path, r, m)
}

// OpenNamed is Open for public or local data, whose rows have as their User what a column says: a feature, the label, or one that the task does not
// read. Empty, no row has one. No event needs a key there.
func OpenNamed(path string, m *task.FeatureMap, column string) (*Reader, error) {
	schema := m.Schema()
	schema.Events.Key, schema.User = "", column
	return openData(path, schema)
}

// fitting reads until an event fits and each declared column was in one.
func fitting(path string, r *Reader, m *task.FeatureMap) (*Reader, error) {
	var first error // of the first event, which tells most about what is wrong
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
