package model

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Formats of a Table.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// A Table writes predictions as lines, one an event: CSV with a header, or JSON. A line holds the position of
// the event in the data and its prediction; nothing of the event itself. Several scores, or probabilities,
// are a column each in CSV, score: and the class, and an object by class in JSON.
type Table struct {
	out     *bufio.Writer
	csv     *csv.Writer // nil for JSON
	names   []string    // of the classes, where there is a score for each
	header  bool        // still to be written
	file    bool        // the data are several files
	cells   []string
	columns []column
}

// A column is a part of a prediction: one number or text, or a number for each class.
type column struct {
	name    string
	numbers func(*prediction) []float64
	text    func(*prediction) string
	width   int
}

// NewTable writes predictions of p to w in a format.
func NewTable(w io.Writer, format string, p Predictor) (*Table, error) {
	if format != CSV && format != JSONL {
		return nil, fmt.Errorf("format %q of predictions: want csv or jsonl", format)
	}
	t := &Table{out: bufio.NewWriterSize(w, 64<<10), header: true}
	if format == CSV {
		t.csv = csv.NewWriter(t.out)
	}
	width := p.Features.Outputs()
	if width > 1 {
		t.names = p.Features.Classes()
	}
	t.columns = append(t.columns, column{name: "score", width: width,
		numbers: func(p *prediction) []float64 { return p.Scores }})
	if !p.Features.Classification() {
		value := make([]float64, 1)
		t.columns = append(t.columns, column{name: "prediction", width: 1, numbers: func(p *prediction) []float64 {
			value[0] = p.Value
			return value
		}})
		return t, nil
	}
	if p.traits().Scores.Probable() {
		t.columns = append(t.columns, column{name: "probability", width: width,
			numbers: func(p *prediction) []float64 { return p.Probabilities }})
	}
	t.columns = append(t.columns, column{name: "class", text: func(p *prediction) string { return p.Class }})
	return t, nil
}

// write adds a line about the event at a line of a file; no file where the data are one. No prediction, nil, is for
// an event that is not valid: its cells are empty, or its score null.
func (t *Table) write(file string, line int64, p *prediction) error {
	if t.header {
		t.header, t.file = false, file != ""
		if t.csv != nil {
			if err := t.csv.Write(t.head()); err != nil {
				return fmt.Errorf("write predictions: %w", err)
			}
		}
	}
	write := t.object
	if t.csv != nil {
		write = t.row
	}
	if err := write(file, line, p); err != nil {
		return fmt.Errorf("write predictions: %w", err)
	}
	return nil
}

// Flush writes the buffered lines.
func (t *Table) Flush() error {
	if t.csv != nil {
		t.csv.Flush()
		if err := t.csv.Error(); err != nil {
			return fmt.Errorf("write predictions: %w", err)
		}
	}
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write predictions: %w", err)
	}
	return nil
}

func (t *Table) head() []string {
	var out []string
	if t.file {
		out = append(out, "file")
	}
	out = append(out, "line")
	for _, c := range t.columns {
		if c.width <= 1 {
			out = append(out, c.name)
			continue
		}
		for _, class := range t.names {
			out = append(out, c.name+":"+class)
		}
	}
	return out
}

func (t *Table) row(file string, line int64, p *prediction) error {
	t.cells = t.cells[:0]
	if t.file {
		t.cells = append(t.cells, file)
	}
	t.cells = append(t.cells, strconv.FormatInt(line, 10))
	for _, c := range t.columns {
		switch {
		case p == nil:
			for range max(c.width, 1) {
				t.cells = append(t.cells, "")
			}
		case c.text != nil:
			t.cells = append(t.cells, c.text(p))
		default:
			for _, x := range c.numbers(p) {
				t.cells = append(t.cells, strconv.FormatFloat(x, 'g', -1, 64))
			}
		}
	}
	return t.csv.Write(t.cells)
}

// object writes a JSON object, its keys in the order of the columns.
func (t *Table) object(file string, line int64, p *prediction) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	add := func(before string, v any) error {
		out.WriteString(before)
		err := encoder.Encode(v)
		out.Truncate(out.Len() - 1) // the end of the line
		return err
	}
	out.WriteByte('{')
	if t.file {
		if err := add(`"file":`, file); err != nil {
			return err
		}
		out.WriteByte(',')
	}
	if err := add(`"line":`, line); err != nil {
		return err
	}
	for _, c := range t.columns {
		var v any
		switch {
		case p == nil && c.name != "score":
			continue
		case p == nil:
		case c.text != nil:
			v = c.text(p)
		case c.width == 1:
			v = c.numbers(p)[0]
		default:
			v = byName{names: t.names, values: c.numbers(p)}
		}
		if err := add(`,"`+c.name+`":`, v); err != nil {
			return err
		}
	}
	out.WriteString("}\n")
	_, err := t.out.Write(out.Bytes())
	return err
}

// byName is an object of numbers, in order.
type byName struct {
	names  []string
	values []float64
}

// MarshalJSON keeps the order of the classes.
func (b byName) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, name := range b.names {
		key, err := plainJSON(name, "")
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(b.values[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}
