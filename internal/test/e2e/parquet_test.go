package e2e

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/internal/test/parquettest"
)

// toParquet writes events FROM to TO of a file of JSON lines, all numbers, as Parquet: parquet IN FROM TO OUT.
func toParquet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: parquet IN FROM TO OUT")
	}
	from, err := strconv.Atoi(args[1])
	ts.Check(err)
	to, err := strconv.Atoi(args[2])
	ts.Check(err)
	in, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer in.Close()
	var columns []parquettest.Column
	var rows [][]any
	lines := bufio.NewScanner(in)
	for n := 0; lines.Scan(); n++ {
		if n < from || n >= to {
			continue
		}
		var event map[string]float64
		ts.Check(json.Unmarshal(lines.Bytes(), &event))
		names := slices.Sorted(maps.Keys(event))
		if columns == nil {
			for _, name := range names {
				columns = append(columns, parquettest.Column{Name: name})
			}
		}
		var row []any
		for _, name := range names {
			row = append(row, event[name])
		}
		rows = append(rows, row)
	}
	ts.Check(lines.Err())
	data, err := parquettest.Encode(columns, rows)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), data, 0o600))
}
