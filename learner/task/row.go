package task

import (
	"fmt"
	"slices"
)

// A Row is one event as it was read, before the feature map. It is private data: it prints as a placeholder. Readers
// reuse its memory, so it is valid until the next row is read.
type Row struct {
	Line   int64 // line in its file, from 1; for idx the number of the image, for parquet of the row
	Number int64 // place in its file, Line - 1: lines that are no events count too, so that no row moves another
	// File is the absolute path of the row's file where the data are a pattern of files; empty where they are one file or
	// stream. File and Number identify an event permanently, also when other files are added.
	File string

	// Key is the row's value in the key's column, where the task declares one; empty where it cannot be read.
	// Invalid rows have one, too.
	Key string

	// User is the person of the row, read from the column of Spec.User; empty where it cannot be read. Invalid
	// rows have one, too.
	User string

	// Fields are the values of the columns of csv, jsonl and parquet, in the order of Schema.Columns.
	Fields []string

	// Index and Value are the features of libsvm and idx. Index counts from 0 and increases strictly; nil is dense.
	Index []int32
	Value []float64

	Label string
}

// Format prints a placeholder under every verb, so that no log or error can carry an event.
func (r Row) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("task.Row{redacted}")) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (r Row) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// A Schema holds the properties of a task that a reader of data needs.
type Schema struct {
	Events  Events
	Columns []string // fields that the features are made from, in this order, each once; nil for libsvm and idx
	// of Columns: numeric where any feature needs a number; never indicator, bucketed, hats or onehot-group.
	// Empty where features need the text of a number with marks, or of a date.
	Kinds     []ColumnKind
	Label     string // field of the label; empty for libsvm and idx
	Class     bool   // whether the label may be a text: a class, or a number with marks
	Dimension int    // number of values of libsvm and idx
	Blanks    bool   // whether a line of no byte is a row that is no event: where blocks are ranges of rows
	User      string // field that names the person; empty where privacy is per event
	// Unlabelled reports whether data may lack labels. Existing labels are then ignored.
	Unlabelled bool
}

// Schema returns the properties of this task's data that a reader needs.
func (s *Spec) Schema() Schema {
	out := Schema{Events: s.Events, Label: s.Label.Column, Class: s.Model.Classification() || len(s.Label.Marks) > 0,
		Blanks: s.Silo != nil}
	if s.User != nil {
		out.User = s.User.Column
	}
	if s.Features.Vector != nil {
		out.Dimension = s.Features.Vector.Dimension
	}
	for _, c := range s.Features.Columns {
		kind := c.Kind
		if kind == Bucketed || kind == Hats || kind == Indicator || kind == OneHot {
			kind = Numeric // these are made from numbers
		}
		if len(c.Marks) > 0 || c.Part != "" {
			kind = ""
		}
		for _, name := range c.Fields() {
			switch at := slices.Index(out.Columns, name); {
			case at < 0:
				out.Columns = append(out.Columns, name)
				out.Kinds = append(out.Kinds, kind)
			case kind == Numeric:
				out.Kinds[at] = kind
			}
		}
	}
	return out
}

// ReadAs returns a copy of the task for data in another format: the same model is learned, only events are
// written differently. Csv that is not the task's own format has a header and commas. Vectors are read from
// libsvm and idx, columns from csv, jsonl and parquet; other pairs are refused. The copy has another canonical
// form: take the task hash from the original.
func (s *Spec) ReadAs(format Format) (*Spec, error) {
	out := *s
	if format != s.Events.Format {
		out.Events = Events{Format: format, Header: format == CSV, MaxLine: s.Events.MaxLine}
		if format == CSV {
			out.Events.Separator = ","
		}
		if !format.Vectors() {
			out.Events.Key = s.Events.Key
		}
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}
