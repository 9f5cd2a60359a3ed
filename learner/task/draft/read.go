package draft

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// A table is a sample of named fields that was read.
type table struct {
	layout  source.Layout
	columns []*column // that can be addressed, in the order of the data
	passed  []omitted
	label   *column
	why     string // the label was taken
	leaks   *leaks
	count
}

// A count holds numbers of rows.
type count struct {
	rows    int // that could be read
	invalid int
	first   *task.RowError // of the invalid ones
}

// An omitted field makes no feature.
type omitted struct{ name, why string }

// labelNames are common names of columns that are to be predicted.
var labelNames = []string{"label", "target", "y", "class", "outcome", "response"}

// readTable reads all rows once.
func readTable(path string, layout source.Layout, label string) (*table, error) {
	t := &table{layout: layout}
	names := t.addressable()
	at, why, err := chooseLabel(names, label, layout)
	if err != nil {
		return nil, err
	}
	if len(names) < 2 {
		return nil, errors.New("one column: want at least a feature and a label")
	}
	for _, name := range names {
		t.columns = append(t.columns, newColumn(name))
	}
	t.columns[at] = newLabel(names[at])
	t.label, t.why, t.leaks = t.columns[at], why, newLeaks(len(names), at)
	rows, err := source.OpenFields(path, layout.Events, names, 0)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	err = t.each(rows, func(row task.Row) {
		for i, cell := range row.Fields {
			t.columns[i].add(cell)
		}
		t.leaks.add(row.Fields)
	})
	return t, err
}

// each calls read for the rows that can be read and counts them and the others.
func (c *count) each(rows *source.Reader, read func(task.Row)) error {
	for {
		row, err := rows.Next()
		var bad *task.RowError
		switch {
		case err == io.EOF && c.rows > 0:
			return nil
		case err == io.EOF && c.invalid > 0:
			return fmt.Errorf("none of the %d rows can be read: %w", c.invalid, c.first)
		case err == io.EOF:
			return errors.New("no rows: a header and nothing below it")
		case errors.As(err, &bad):
			if c.invalid++; c.first == nil {
				c.first = bad
			}
		case err != nil:
			return err
		default:
			c.rows++
			read(row)
		}
	}
}

// addressable returns the names by which a task can ask for a field.
func (t *table) addressable() (names []string) {
	times := map[string]int{}
	for _, name := range t.layout.Fields {
		times[name]++
	}
	for i, name := range t.layout.Fields {
		switch {
		case name == "":
			t.pass(fmt.Sprintf("column %d", i+1), "it has no name")
		case times[name] > 1:
			t.pass(name, "several columns have this name, and no task can tell them apart")
		case len(name) > 256:
			t.pass(name[:40]+"...", "its name is longer than 256 bytes")
		case strings.TrimSpace(name) != name || !utf8.ValidString(name):
			t.pass(name, "its name has blanks around it, or is not UTF-8")
		default:
			names = append(names, name)
		}
	}
	for _, name := range t.layout.Passed {
		t.pass(name, "not a single value in every row")
	}
	return names
}

func (t *table) pass(name, why string) {
	if !slices.ContainsFunc(t.passed, func(o omitted) bool { return o.name == name }) {
		t.passed = append(t.passed, omitted{name, why})
	}
}

// chooseLabel takes the column that was asked for, the one that is called like a label, or the last one.
func chooseLabel(names []string, asked string, layout source.Layout) (at int, why string, err error) {
	if asked != "" {
		if at = slices.Index(names, asked); at >= 0 {
			return at, "as asked for", nil
		}
		if slices.Contains(layout.Fields, asked) {
			return 0, "", fmt.Errorf("label %q: several columns have this name", asked)
		}
		return 0, "", fmt.Errorf("label %q: not a column; want one of %s", asked, list(names, 20))
	}
	if len(names) == 0 {
		return 0, "", errors.New("no column has a name of its own")
	}
	for _, like := range labelNames {
		for i, name := range names {
			if strings.EqualFold(name, like) {
				return i, "because of its name", nil
			}
		}
	}
	return len(names) - 1, "because it is the last column", nil
}

// list joins the first words.
func list(words []string, most int) string {
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

// A vector is a sample of libsvm that was read.
type vector struct {
	label     *column
	dimension int
	nonzeros  int // the most of a row
	low, high float64
	binary    bool
	whole     bool
	count
}

func readVector(path string, layout source.Layout) (*vector, error) {
	v := &vector{label: newLabel("label"), binary: true, whole: true}
	rows, err := source.OpenFields(path, layout.Events, nil, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	err = v.each(rows, func(row task.Row) {
		v.label.add(row.Label)
		if n := len(row.Index); n > 0 {
			v.dimension = max(v.dimension, int(row.Index[n-1])+1)
		}
		nonzeros := 0
		for _, x := range row.Value {
			if x != 0 {
				nonzeros++
			}
			v.low, v.high = min(v.low, x), max(v.high, x)
			v.binary = v.binary && (x == 0 || x == 1)
			v.whole = v.whole && x == math.Trunc(x)
		}
		v.nonzeros = max(v.nonzeros, nonzeros)
	})
	if err == nil && v.nonzeros == 0 {
		err = errors.New("no values but zeros")
	}
	return v, err
}
