package object

import (
	"encoding/json"
	"fmt"

	"github.com/panlearn/panlearn/learner/task"
)

// A Reader reads the objects of a task, one at a time, into rows. The column a.b is the key a.b, or b of the object a.
// Keys that the task does not name are passed over, whatever they hold. A column whose key is not there, or null, is an
// empty field; the label has to be there.
type Reader struct {
	index  map[string]int // column to position; the label comes last
	names  []string
	values []string
	seen   []bool
	wanted int    // names that are read, the others are passed over: all, or all but the label
	known  []bool // names that an event had so far
	name   []byte // of the member that is read, after those of the objects that it is in; reused
	// within holds the names of objects, each with the dot after it, that a column's name begins with.
	within map[string]bool
	line   int64 // of the object that is read
	exact  bool  // whole numbers that a float64 does not hold are no values
}

// NewReader returns the reader of a schema in jsonl.
func NewReader(schema task.Schema) *Reader {
	f := &Reader{index: make(map[string]int), within: make(map[string]bool)}
	f.names = append(append(f.names, schema.Columns...), schema.Label)
	for i, c := range f.names {
		f.index[c] = i
		for at, r := range c {
			if r == '.' {
				f.within[c[:at+1]] = true
			}
		}
	}
	f.values = make([]string, len(f.names))
	f.seen = make([]bool, len(f.names))
	f.known = make([]bool, len(f.names))
	f.wanted = len(f.names)
	if schema.Unlabelled {
		f.wanted--
	}
	return f
}

// Event reads one event that a program made, which is there in full. A whole number beyond 2^53, which another
// language would have rounded before, is no value.
func Event(text []byte, m *task.FeatureMap) (row task.Row, err error) {
	schema := m.Schema()
	f := NewReader(schema)
	row.Line, f.line, f.exact = 1, 1, true
	if len(text) > schema.Events.MaxLine {
		return row, f.fail("", fmt.Sprintf("longer than events.max_line, %d bytes", schema.Events.MaxLine))
	}
	return row, f.Read(text, 1, &row)
}

// Reasons never quote the decoder, whose messages show characters of the data.
const notObject = "not one JSON object"

// fail makes the error of the object that is read.
func (f *Reader) fail(column, reason string) error {
	return &task.RowError{Line: f.line, Column: column, Reason: reason}
}

// Read reads the text of an object on a line into the fields and the label of a row, which are valid until the next
// call. The error is a *task.RowError.
func (f *Reader) Read(text []byte, line int64, row *task.Row) error {
	f.line = line
	clear(f.seen)
	if !Is(text) {
		return f.fail("", notObject)
	}
	f.name = f.name[:0]
	if err := f.members(text); err != nil {
		return err
	}
	last := len(f.values) - 1
	for i, ok := range f.seen[:f.wanted] {
		switch {
		case ok:
		case i == last:
			return f.fail(f.names[i], "the field is missing")
		default:
			f.values[i] = ""
		}
	}
	row.Fields, row.Label = f.values[:last], f.values[last]
	return nil
}

// members reads the members of a JSON object whose own name, with a dot after it, is f.name; empty for a row's.
func (f *Reader) members(object []byte) error {
	outer := len(f.name)
	for quoted, value := range All(object) {
		f.name = AppendText(f.name[:outer], quoted)
		i, ok := f.index[string(f.name)]
		switch {
		case ok && i < f.wanted && (value[0] != '{' || !f.within[string(append(f.name, '.'))]):
			if err := f.member(i, value); err != nil {
				return err
			}
		case value[0] == '{':
			if f.name = append(f.name, '.'); f.within[string(f.name)] {
				if err := f.members(value); err != nil {
					return err
				}
			}
		}
	}
	f.name = f.name[:outer]
	return nil
}

// member takes the value of column i.
func (f *Reader) member(i int, value []byte) error {
	name := f.names[i]
	if f.seen[i] {
		return f.fail(name, "the key is there twice")
	}
	f.seen[i], f.known[i] = true, true
	if value[0] == 'n' && i < len(f.names)-1 {
		f.values[i] = ""
		return nil
	}
	if f.exact && inexact(value) {
		return f.fail(name, "a whole number beyond 2^53")
	}
	var ok bool
	if f.values[i], ok = scalarText(value); !ok {
		return f.fail(name, "not a number, a string, true or false")
	}
	return nil
}

// Unknown names the columns that no event had so far.
func (f *Reader) Unknown() (names []string) {
	for i, name := range f.names[:len(f.names)-1] {
		if !f.known[i] {
			names = append(names, name)
		}
	}
	return names
}

// scalarText returns a JSON value as a csv file would have it.
func scalarText(value []byte) (text string, ok bool) {
	switch value[0] {
	case '"':
		return text, json.Unmarshal(value, &text) == nil
	case '[', '{', 'n':
		return "", false
	}
	return string(value), true // true, false, or a number as it is written
}
