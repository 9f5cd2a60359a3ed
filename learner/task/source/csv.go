package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
)

// csvRows reads separated fields, one event a line: RFC 4180 without line breaks in fields, so that a damaged row
// never swallows the next one and memory is bounded by the line.
type csvRows struct {
	lines     *lines
	separator byte
	width     int      // fields of a line
	position  []int    // of the schema's columns
	label     int      // -1 where there is none
	either    bool     // without a header, lines of data that may be without labels have a field less where they are
	fields    []string // of the last line, reused
	chosen    []string
}

// newCSV reads the header, where the data have one. Its errors do not show the header: if the data have none, the first
// line is an event.
func newCSV(l *lines, schema task.Schema) (rows, error) {
	f := &csvRows{lines: l, separator: schema.Events.Separator[0]}
	names := schema.Events.Columns
	if schema.Events.Header {
		line, err := l.header()
		if err != nil {
			return nil, err
		}
		if names, err = splitCSV(nil, string(line), f.separator); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
	}
	f.width = len(names)
	find := func(column string) (int, error) {
		at := -1
		for i, n := range names {
			if n == column && at >= 0 {
				return 0, fmt.Errorf("column %q is in the header twice", column)
			}
			if n == column {
				at = i
			}
		}
		if at < 0 {
			return 0,
				fmt.Errorf("column %q is not in the header, whose fields between %q are %d: are names and events.separator right?",
					column, f.separator, len(names))
		}
		return at, nil
	}
	for _, c := range schema.Columns {
		at, err := find(c)
		if err != nil {
			return nil, err
		}
		f.position = append(f.position, at)
	}
	for _, c := range namingColumns(schema) {
		at, err := find(c.name)
		if err != nil {
			return nil, err
		}
		l.named = append(l.named, naming{&csvKey{separator: f.separator, position: at}, c.set})
	}
	if schema.Unlabelled && !slices.Contains(names, schema.Label) {
		f.label = -1
		return f, nil
	}
	f.either = schema.Unlabelled && !schema.Events.Header
	var err error
	f.label, err = find(schema.Label)
	return f, err
}

func (f *csvRows) close() error { return nil }

func (f *csvRows) next(row *task.Row) error {
	line, err := f.lines.row(row)
	if err != nil {
		return err
	}
	if f.fields, err = splitCSV(f.fields[:0], string(line), f.separator); err != nil {
		return f.lines.fail("", err.Error())
	}
	unlabelled := f.either && len(f.fields) == f.width-1 // the field that is not there is the label's
	if len(f.fields) != f.width && !unlabelled {
		return f.lines.fail("", fmt.Sprintf("%d fields, want %d", len(f.fields), f.width))
	}
	f.chosen = f.chosen[:0]
	for _, at := range f.position {
		if unlabelled && at > f.label {
			at--
		}
		f.chosen = append(f.chosen, f.fields[at])
	}
	row.Fields = f.chosen
	if f.label >= 0 && !unlabelled {
		row.Label = f.fields[f.label]
	}
	return nil
}

// splitCSV appends the fields of a line. Blanks around a field do not count; inside quotes everything does, and a
// quote is written twice.
func splitCSV(dst []string, line string, separator byte) ([]string, error) {
	blanks := " \t"
	if separator == '\t' {
		blanks = " "
	}
	for {
		line = strings.TrimLeft(line, blanks)
		if !strings.HasPrefix(line, `"`) {
			field, rest, more := strings.Cut(line, string(rune(separator)))
			if strings.Contains(field, `"`) {
				return dst, errors.New("a quote inside a field that does not start with one")
			}
			dst = append(dst, strings.TrimRight(field, blanks))
			if !more {
				return dst, nil
			}
			line = rest
			continue
		}
		field, rest, err := unquote(line[1:])
		if err != nil {
			return dst, err
		}
		dst = append(dst, field)
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" {
			return dst, nil
		}
		if rest[0] != separator {
			return dst, errors.New("text after a closing quote")
		}
		line = rest[1:]
	}
}

// unquote reads up to the closing quote.
func unquote(s string) (field, rest string, err error) {
	at := 0
	for {
		i := strings.IndexByte(s[at:], '"')
		if i < 0 {
			return "", "", errors.New("a quote is not closed on its line")
		}
		at += i
		if !strings.HasPrefix(s[at+1:], `"`) {
			return strings.ReplaceAll(s[:at], `""`, `"`), s[at+1:], nil
		}
		at += 2
	}
}
