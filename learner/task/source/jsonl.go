package source

import (
	"encoding/json"

	"github.com/panlearn/panlearn/learner/task"
)

// jsonRows reads one JSON object a line. The column a.b is the key a.b, or b of the object a. Keys that the task does
// not name are passed over, whatever they hold. A column whose key is not there, or null, is an empty field; the label
// has to be there.
type jsonRows struct {
	lines  *lines
	index  map[string]int // column to position; the label comes last
	names  []string
	values []string
	seen   []bool
	wanted int    // names that are read, the others are passed over: all, or all but the label
	known  []bool // names that an event had so far
	name   []byte // of the member that is read, after those of the objects that it is in; reused
	// within holds the names of objects, each with the dot after it, that a column's name begins with.
	within map[string]bool
}

// Object reads one event of a task in jsonl that is there in full, as a Reader reads a line of a file.
func Object(text []byte, m *task.FeatureMap) (row task.Row, err error) {
	schema := m.Schema()
	f := newJSONL(&lines{limit: schema.Events.MaxLine, line: 1}, schema)
	row.Line = 1
	if len(text) > f.lines.limit {
		return row, f.lines.tooLong()
	}
	return row, f.object(text, &row)
}

// Reasons never quote the decoder, whose messages show characters of the data.
const notObject = "not one JSON object"

func newJSONL(l *lines, schema task.Schema) *jsonRows {
	f := &jsonRows{lines: l, index: make(map[string]int), within: make(map[string]bool)}
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
	for _, c := range namingColumns(schema) {
		l.named = append(l.named, naming{&Member{Name: c.name, Numbers: true, Most: task.MaxKey}, c.set})
	}
	f.wanted = len(f.names)
	if schema.Unlabelled {
		f.wanted--
	}
	return f
}

func (f *jsonRows) close() error { return nil }

func (f *jsonRows) next(row *task.Row) error {
	line, err := f.lines.row(row)
	if err != nil {
		return err
	}
	return f.object(line, row)
}

// object reads the text of a row.
func (f *jsonRows) object(text []byte, row *task.Row) error {
	clear(f.seen)
	if !isObject(text) {
		return f.lines.fail("", notObject)
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
			return f.lines.fail(f.names[i], "the key is missing")
		default:
			f.values[i] = ""
		}
	}
	row.Fields, row.Label = f.values[:last], f.values[last]
	return nil
}

// members reads the members of a JSON object whose own name, with a dot after it, is f.name; empty for a row's.
func (f *jsonRows) members(object []byte) error {
	outer := len(f.name)
	for quoted, value := range members(object) {
		f.name = appendText(f.name[:outer], quoted)
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
func (f *jsonRows) member(i int, value []byte) error {
	name := f.names[i]
	if f.seen[i] {
		return f.lines.fail(name, "the key is there twice")
	}
	f.seen[i], f.known[i] = true, true
	if value[0] == 'n' && i < len(f.names)-1 {
		f.values[i] = ""
		return nil
	}
	var ok bool
	if f.values[i], ok = scalarText(value); !ok {
		return f.lines.fail(name, "not a number, a string, true or false")
	}
	return nil
}

// unknown names the columns that no event had so far.
func (f *jsonRows) unknown() (names []string) {
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
