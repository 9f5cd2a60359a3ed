package source

import (
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
)

// jsonRows reads one JSON object a line, see object.Reader.
type jsonRows struct {
	lines  *lines
	object *object.Reader
}

func newJSONL(l *lines, schema task.Schema) (rows, error) {
	for _, c := range namingColumns(schema) {
		l.named = append(l.named, naming{&object.Member{Name: c.name, Numbers: true, Most: task.MaxKey}, c.set})
	}
	return &jsonRows{lines: l, object: object.NewReader(schema)}, nil
}

func (f *jsonRows) close() error { return nil }

func (f *jsonRows) unknown() []string { return f.object.Unknown() }

func (f *jsonRows) next(row *task.Row) error {
	line, err := f.lines.row(row)
	if err != nil {
		return err
	}
	return f.object.Read(line, row.Line, row)
}
