package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source/parquet"
)

// errNotFile says why Parquet is not read from a stream: its table of contents comes last.
var errNotFile = errors.New("not a regular file: Parquet begins at its end, and no copy of the events is put on a disk to wait for that")

// parquetRows reads the columns of the task from a Parquet file. A null is an empty field.
type parquetRows struct {
	in     *parquet.Reader
	limit  int
	values []string // of the columns, then of the label, where it is read
	fields int      // of values
	line   int64
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
		return nil, errors.New("the file is compressed as a whole: Parquet compresses its pages, and has to be unpacked first")
	}
	var columns []parquet.Column
	for i, name := range schema.Columns {
		columns = append(columns, parquet.Column{Name: name, Kind: columnKind(schema.Kinds[i])})
	}
	if !schema.Unlabelled {
		label := parquet.Number
		if schema.Class {
			label = parquet.Any
		}
		columns = append(columns, parquet.Column{Name: schema.Label, Kind: label})
	}
	r, err := parquet.Open(in, size, columns)
	if err != nil {
		return nil, err
	}
	return &parquetRows{in: r, limit: schema.Events.MaxLine, values: make([]string, len(columns)), fields: len(schema.Columns)}, nil
}

func columnKind(k task.ColumnKind) parquet.Kind {
	switch k {
	case task.Numeric:
		return parquet.Number
	case task.Categorical, task.Hashed:
		return parquet.Word
	}
	return parquet.Any
}

func (f *parquetRows) next(row *task.Row) error {
	if err := f.in.Next(f.values); err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("row %d: %w", f.line+1, err)
	}
	f.line++
	size := 0
	for _, v := range f.values {
		size += len(v)
	}
	if size > f.limit {
		return &task.RowError{Line: f.line, Reason: fmt.Sprintf("longer than events.max_line, %d bytes", f.limit)}
	}
	row.Line, row.Fields = f.line, f.values[:f.fields]
	if f.fields < len(f.values) {
		row.Label = f.values[f.fields]
	}
	return nil
}

func (f *parquetRows) close() error { f.in.Close(); return nil }
