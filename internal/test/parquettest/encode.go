// Package parquettest writes Parquet files for tests.
package parquettest

import (
	"bytes"
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// A Column is a column of a file. A nil Node is an optional column of the type of its first value that is not nil.
type Column struct {
	Name string
	Node parquet.Node
}

// Encode writes rows of bool, int32, int64, float32, float64, string or nil, one for each column.
func Encode(columns []Column, rows [][]any, options ...parquet.WriterOption) ([]byte, error) {
	group := parquet.Group{}
	for i, c := range columns {
		if group[c.Name] = c.Node; c.Node == nil {
			group[c.Name] = nodeOf(rows, i)
		}
	}
	schema := parquet.NewSchema("events", group)
	var out bytes.Buffer
	w := parquet.NewWriter(&out, append([]parquet.WriterOption{schema}, options...)...)
	for _, row := range rows {
		line := make(parquet.Row, len(columns))
		for i, c := range columns {
			leaf, ok := schema.Lookup(c.Name)
			if !ok {
				return nil, fmt.Errorf("column %q is not flat", c.Name)
			}
			v := parquet.ValueOf(row[i])
			level := leaf.MaxDefinitionLevel
			if row[i] == nil {
				level = 0
			}
			line[leaf.ColumnIndex] = v.Level(0, level, leaf.ColumnIndex)
		}
		if _, err := w.WriteRows([]parquet.Row{line}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func nodeOf(rows [][]any, column int) parquet.Node {
	for _, row := range rows {
		switch row[column].(type) {
		case bool:
			return parquet.Optional(parquet.Leaf(parquet.BooleanType))
		case int32:
			return parquet.Optional(parquet.Leaf(parquet.Int32Type))
		case int64:
			return parquet.Optional(parquet.Leaf(parquet.Int64Type))
		case float32:
			return parquet.Optional(parquet.Leaf(parquet.FloatType))
		case float64:
			return parquet.Optional(parquet.Leaf(parquet.DoubleType))
		case string:
			return parquet.Optional(parquet.String())
		}
	}
	return parquet.Optional(parquet.String())
}
