package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
)

// A Layout describes the format of data, as far as their beginning shows it.
type Layout struct {
	// Events is the format as a task file declares it. Csv has either a header or columns named c1, c2, ... by
	// position.
	Events task.Events
	// Fields are the names of the fields in order; those of a header may be empty or there twice. nil for libsvm. Of jsonl
	// they are the keys of the beginning.
	Fields []string
	// Passed are fields that no task reads: nested ones.
	Passed []string
}

// beginning is the most lines that Detect looks at.
const beginning = 200

// separators that are looked for, in the order of preference where nothing else decides.
const separators = ",;\t|"

// Detect looks at the beginning of data, of the first file of a pattern. It is for public or local data: its errors
// name fields of a header.
func Detect(path string) (Layout, error) {
	if path == "-" {
		return Layout{}, errors.New("want a file: standard input cannot be read twice")
	}
	files, err := expand(path, task.Schema{})
	if err != nil {
		return Layout{}, err
	}
	in, err := openFile(files[0].path)
	if err != nil {
		return Layout{}, fmt.Errorf("open data: %w", err)
	}
	defer in.Close()
	stream, err := inflate(in)
	if errors.Is(err, errIsParquet) {
		return detectParquet(in)
	}
	if err != nil {
		return Layout{}, readError(files[0].path, err)
	}
	defer stream.Close()
	l := newLines(stream, task.Schema{Events: task.Events{MaxLine: task.DefaultMaxLine}})
	var head []string
	for len(head) < beginning {
		line, err := l.next()
		var long *task.RowError
		switch {
		case err == io.EOF:
			return detectText(head)
		case errors.As(err, &long):
			continue // an invalid row, like others
		case err != nil:
			return Layout{}, readError(files[0].path, err)
		}
		head = append(head, string(line))
	}
	return detectText(head)
}

func detectText(head []string) (Layout, error) {
	if len(head) == 0 {
		return Layout{}, errors.New("no lines")
	}
	first := strings.TrimSpace(head[0])
	switch {
	case strings.HasPrefix(head[0], "\xff\xfe") || strings.HasPrefix(head[0], "\xfe\xff"):
		return Layout{}, errors.New("text in UTF-16: convert it with iconv -f utf-16 -t utf-8")
	case strings.HasPrefix(head[0], "\x00\x00\x08"):
		return Layout{}, errors.New("an IDX file: no sample, but deploy/tasks/mnist.yaml shows a task for it")
	case strings.IndexByte(head[0], 0) >= 0:
		return Layout{}, errors.New("not text: csv, tsv, jsonl, libsvm or parquet")
	case strings.HasPrefix(first, "["):
		return Layout{}, errors.New("a JSON list: want one JSON object a line")
	case strings.HasPrefix(first, "{"):
		return detectJSONL(head)
	case isLIBSVM(head):
		return Layout{Events: task.Events{Format: task.LIBSVM}}, nil
	}
	return detectCSV(head)
}

func detectParquet(in io.ReadCloser) (Layout, error) {
	rows, err := newParquet(in, task.Schema{Unlabelled: true})
	if err != nil {
		return Layout{}, err
	}
	out := Layout{Events: task.Events{Format: task.Parquet}}
	for _, c := range rows.file.Root().Columns() {
		out.file(c)
	}
	return out, nil
}

// file puts a column of a Parquet file where it belongs.
func (l *Layout) file(c *parquet.Column) {
	if (&parquetColumn{Column: c, read: either}).refused() != "" {
		l.Passed = append(l.Passed, c.Name())
		return
	}
	l.Fields = append(l.Fields, c.Name())
}

// detectJSONL takes the keys of all lines, in the order in which they come.
func detectJSONL(head []string) (Layout, error) {
	out := Layout{Events: task.Events{Format: task.JSONL}}
	seen, listed := map[string]bool{}, map[string]bool{}
	objects := false
	for _, line := range head {
		if !object.Is([]byte(line)) {
			continue
		}
		for name, value := range leaves([]byte(line), "", 0) {
			if !seen[name] {
				out.Fields = append(out.Fields, name)
			}
			seen[name], objects = true, true
			listed[name] = listed[name] || value[0] == '[' || value[0] == '{'
		}
	}
	if !objects {
		return Layout{}, errors.New("lines that begin like JSON and are not: want one JSON object a line")
	}
	out.Fields = slices.DeleteFunc(out.Fields, func(name string) bool {
		if listed[name] {
			out.Passed = append(out.Passed, name)
		}
		return listed[name]
	})
	return out, nil
}

// mostNested bounds how deep objects are looked into for columns.
const mostNested = 4

// leaves yields the members of a JSON object, and of the objects in it under names with dots, as object.Reader reads
// them.
func leaves(text []byte, prefix string, depth int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for quoted, value := range object.All(text) {
			name := prefix + string(object.AppendText(nil, quoted))
			if value[0] != '{' || depth == mostNested {
				if !yield(name, value) {
					return
				}
				continue
			}
			for inner, value := range leaves(value, name+".", depth+1) {
				if !yield(inner, value) {
					return
				}
			}
		}
	}
}

// isLIBSVM reports whether the lines are "label index:value ...".
func isLIBSVM(head []string) bool {
	pairs := 0
	for _, line := range head {
		text, _, _ := bytes.Cut([]byte(line), []byte("#"))
		for i, field := range strings.Fields(string(text)) {
			before, after, ok := strings.Cut(field, ":")
			if i == 0 && !ok {
				if _, err := strconv.ParseFloat(field, 64); err != nil {
					return false
				}
				continue
			}
			if _, err := strconv.ParseUint(before, 10, 31); err != nil || !ok {
				return false
			}
			if _, err := strconv.ParseFloat(after, 64); err != nil {
				return false
			}
			pairs++
		}
	}
	return pairs > 0
}

// detectCSV finds the separator, the prefix of lines that are no events, and whether there is a header.
func detectCSV(head []string) (Layout, error) {
	best, separator, width := 0.0, byte(0), 0
	for _, s := range []byte(separators) {
		if score, w := tidiness(head, s); score > best {
			best, separator, width = score, s, w
		}
	}
	if separator == 0 {
		if n := len(strings.Fields(head[0])); n > 1 && len(strings.Fields(head[len(head)-1])) == n {
			return Layout{},
				errors.New("fields that only blanks separate: want commas, semicolons, tabs or |, as tr -s ' ' , makes them")
		}
		return Layout{},
			errors.New("one column: want at least a feature and a label, separated by commas, semicolons, tabs or |")
	}
	e := task.Events{Format: task.CSV, Separator: string(rune(separator))}
	var rows [][]string
	for _, line := range head {
		fields, err := splitCSV(nil, line, separator)
		if err == nil && len(fields) != width && strings.Contains("#|%", line[:1]) {
			if len(rows) == 0 {
				e.SkipLines++
			}
			continue
		}
		if err != nil {
			fields = nil
		}
		rows = append(rows, fields)
	}
	if len(rows[0]) == width-1 && len(rows) > 1 {
		return Layout{},
			fmt.Errorf("the first line has %d fields and the others %d: want a name for every column, that of row names too",
				len(rows[0]), width)
	}
	if e.Header = isHeader(rows, width); e.Header {
		for _, name := range rows[0] {
			if !utf8.ValidString(name) {
				return Layout{}, errors.New("a header that is not UTF-8: convert the file, such as with iconv -f latin1 -t utf-8")
			}
		}
		return Layout{Events: e, Fields: rows[0]}, nil
	}
	for i := range width {
		e.Columns = append(e.Columns, "c"+strconv.Itoa(i+1))
	}
	return Layout{Events: e, Fields: e.Columns}, nil
}

// tidiness returns the share of the lines that have the usual number of fields, which it returns too, times the
// share of fields without another separator in them. Zero: not a separator here. A decimal comma is no
// separator.
func tidiness(head []string, separator byte) (score float64, width int) {
	widths := map[int]int{}
	tidy, all := 0, 0
	for _, line := range head {
		fields, err := splitCSV(nil, line, separator)
		if err != nil {
			continue
		}
		widths[len(fields)]++
		for _, f := range fields {
			if all++; DecimalComma(f) || !strings.ContainsAny(f, separators) {
				tidy++
			}
		}
	}
	for w, n := range widths {
		if n > widths[width] || n == widths[width] && w > width {
			width = w
		}
	}
	if width < 2 {
		return 0, 0
	}
	return float64(widths[width]) / float64(len(head)) * float64(tidy) / float64(all), width
}

// DecimalComma reports whether a field is a number if its comma is a point.
func DecimalComma(field string) bool {
	if strings.Count(field, ",") != 1 {
		return false
	}
	_, err := strconv.ParseFloat(strings.Replace(field, ",", ".", 1), 64)
	return err == nil
}

// isHeader reports whether the first line names the columns: it holds no number where the others do, or, if no column
// holds numbers, no word that occurs below it. Names that are numbers count where they are 0, 1, 2 and so on.
func isHeader(rows [][]string, width int) bool {
	first := rows[0]
	if len(first) != width || counts(first) {
		return len(first) == width
	}
	for _, f := range first {
		if x, err := strconv.ParseFloat(f, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) { // inf may be a name
			return false
		}
	}
	repeated := false
	for i, name := range first {
		numbers, cells := 0, 0
		for _, row := range rows[1:] {
			if len(row) != width || row[i] == "" {
				continue
			}
			cells++
			if isNumber(row[i]) || DecimalComma(row[i]) {
				numbers++
			}
			repeated = repeated || row[i] == name
		}
		if numbers > cells/2 && name != "?" {
			return true
		}
	}
	return !repeated
}

// counts reports whether the fields are 0, 1, 2 ..., the first perhaps empty.
func counts(fields []string) bool {
	if fields[0] == "" {
		fields = fields[1:]
	}
	for i, f := range fields {
		if f != strconv.Itoa(i) {
			return false
		}
	}
	return len(fields) > 1
}

func isNumber(field string) bool {
	_, err := strconv.ParseFloat(field, 64)
	return err == nil
}

// OpenFields opens data and reads the named fields as they are, without a task: rows have no label, and nothing is
// checked before they are read. Of libsvm, values up to the dimension are read, and labels with them. It is for public
// or local data.
func OpenFields(path string, events task.Events, fields []string, dimension int) (*Reader, error) {
	if events.MaxLine == 0 {
		events.MaxLine = task.DefaultMaxLine
	}
	schema := task.Schema{Events: events, Columns: fields, Kinds: make([]task.ColumnKind, len(fields)),
		Dimension: dimension, Unlabelled: true}
	return openData(path, schema)
}
