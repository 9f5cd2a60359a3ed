package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/learner/task"
)

// errNotFile refuses Parquet from a stream, because its table of contents comes last.
var errNotFile = errors.New(
	"not a regular file: Parquet begins at its end, and no copy of the events is put on a disk to wait for that")

// parquetRows reads the columns of the task from a Parquet file, by github.com/parquet-go/parquet-go, one page of each
// column at a time. A null is an empty field.
//
// The data are the caller's own, so that a damaged file ends with an error, and no more is promised: what the library
// panics about is an error (guarded), and the footer and the pages are bounded. Damage where there is no checksum may
// change values, and a file that was made for it can spend memory.
type parquetRows struct {
	file    *parquet.File
	in      io.ReaderAt
	columns []*parquetColumn // of the task, then of the label, the key and the person, where they are read
	limit   int
	page    int64          // bytes of the largest page that is read
	values  []string       // of the columns
	fields  int            // of values
	label   bool           // it comes after the fields
	named   []namingColumn // they come last
	omitted []bool         // values that lie in a page that is too large to be read
	line    int64
	group   int   // that comes next
	left    int64 // rows of the group that is being read
}

func newParquet(in io.Reader, schema task.Schema) (*parquetRows, error) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, errNotFile
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	return newParquetRows(f, info.Size(), schema)
}

func newParquetRows(in io.ReaderAt, size int64, schema task.Schema) (*parquetRows, error) {
	var magic [4]byte
	if n, _ := in.ReadAt(magic[:], 0); bytes.HasPrefix(magic[:n], gzipMagic) || bytes.HasPrefix(magic[:n], zstdMagic) {
		return nil,
			errors.New("the file is compressed as a whole: Parquet compresses its pages, and has to be unpacked first")
	}
	var ask []wanted
	for i, name := range schema.Columns {
		ask = append(ask, wanted{name, columnKind(schema.Kinds[i])})
	}
	if !schema.Unlabelled {
		label := number
		if schema.Class {
			label = either
		}
		ask = append(ask, wanted{schema.Label, label})
	}
	named := namingColumns(schema)
	for _, c := range named {
		ask = append(ask, wanted{c.name, word})
	}
	f, err := openColumns(in, size, ask)
	if err != nil {
		return nil, err
	}
	f.limit, f.fields, f.label, f.named = schema.Events.MaxLine, len(schema.Columns), !schema.Unlabelled, named
	return f, nil
}

// wanted returns the column of the file with the name.
type wanted struct {
	name string
	kind kind
}

// openColumns finds the columns and checks their metadata in the footer.
func openColumns(in io.ReaderAt, size int64, ask []wanted) (*parquetRows, error) {
	f := &parquetRows{in: in, page: mostPage, values: make([]string, len(ask)), omitted: make([]bool, len(ask))}
	err := guarded(func() error {
		file, err := openParquet(in, size)
		if err != nil {
			return err
		}
		f.file = file
		for _, w := range ask {
			c, err := chooseColumn(file, w)
			if err != nil {
				return err
			}
			if err := c.validateChunks(); err != nil {
				return err
			}
			f.columns = append(f.columns, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func columnKind(k task.ColumnKind) kind {
	switch k {
	case task.Numeric:
		return number
	case task.Categorical, task.Hashed, task.Text:
		return word
	}
	return either
}

func (f *parquetRows) next(row *task.Row) error {
	if err := f.read(); err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("row %d: %w", f.line+1, err)
	}
	f.line++
	values := f.values[:len(f.values)-len(f.named)]
	for i, c := range f.named {
		name := f.values[len(values)+i]
		if len(name) > task.MaxKey || !utf8.ValidString(name) {
			name = ""
		}
		c.set(row, name)
	}
	size := 0
	for i, v := range values {
		size += len(v)
		if f.omitted[i] {
			return &task.RowError{Line: f.line, Column: f.columns[i].Name(),
				Reason: fmt.Sprintf("in a page of more than %d bytes", f.page)}
		}
	}
	if size > f.limit {
		return &task.RowError{Line: f.line, Reason: fmt.Sprintf("longer than events.max_line, %d bytes", f.limit)}
	}
	row.Line, row.Fields = f.line, values[:f.fields]
	if f.label {
		row.Label = values[f.fields]
	}
	return nil
}

// read fills values from the next row.
func (f *parquetRows) read() error {
	for f.left == 0 {
		groups := f.file.RowGroups()
		if f.group == len(groups) {
			return io.EOF
		}
		g := groups[f.group]
		f.left = g.NumRows()
		for _, c := range f.columns {
			if err := c.begin(f.in, g, f.group, f.page); err != nil {
				return err
			}
		}
		f.group++
	}
	f.left--
	for i, c := range f.columns {
		var err error
		if f.values[i], f.omitted[i], err = c.next(); err != nil {
			return err
		}
	}
	return nil
}

func (f *parquetRows) close() error {
	var err error
	for _, c := range f.columns {
		err = errors.Join(err, c.end())
	}
	return err
}
