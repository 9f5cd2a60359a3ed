package task

import (
	"fmt"
	"slices"
	"strings"
)

// A FieldError reports an invalid field of a task declaration. Declarations are public, so it shows the value.
type FieldError struct {
	Line  int    // line in the file, from 1; 0 if unknown
	Path  string // dotted path from the root, list positions from 0: features.columns.3.min; empty: the whole declaration
	Value string // what was found, shortened
	// Absent reports whether the file lacks the key: Value is then its default.
	Absent bool
	Want   string // what would be accepted
}

// Error returns one line with the path, the value, and what would be accepted.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString("task")
	if e.Line > 0 {
		fmt.Fprintf(&b, " line %d", e.Line)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path)
		switch {
		case e.Absent && slices.Contains([]string{"", "0", "[]"}, e.Value):
			b.WriteString(" is not given")
		case e.Value != "":
			b.WriteString(" = " + e.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString("want " + e.Want)
	return b.String()
}

// refuse builds a FieldError for a value of any printable type.
func refuse(path string, value any, want string, args ...any) error {
	return &FieldError{Path: path, Value: shorten(fmt.Sprint(value)), Want: fmt.Sprintf(want, args...)}
}

// shorten cuts a value so that an error stays on one line of readable length.
func shorten(s string) string {
	const most = 60
	s = fmt.Sprintf("%q", s)
	s = s[1 : len(s)-1]
	if len(s) > most {
		s = s[:most-3] + "..."
	}
	return s
}

// A RowError describes why one row of data is not an event. It is recoverable: reading goes on with the next
// row, and the device reports the zero vector for this one. It never carries contents of the row.
type RowError struct {
	File   string // the row's file if the data are a pattern of files
	Line   int64  // line in the file, from 1; for idx the number of the image, for parquet of the row
	Column string // field; empty: the whole row
	Reason string // what is wrong and what would be accepted, without the value
}

// Error names file, line and column.
func (e *RowError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row at line %d", e.Line)
	if e.File != "" {
		fmt.Fprintf(&b, " of %q", e.File)
	}
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %s", shorten(e.Column))
	}
	return b.String() + ": " + e.Reason
}
