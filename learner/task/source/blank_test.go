package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// TestEmptyLinesAreRowsOfBlocks: where blocks are ranges of rows an empty line is a row that is no event,
// wherever it is, the last one too; else a row that is replaced by an empty one would decide whether there is a
// block.
func TestEmptyLinesAreRowsOfBlocks(t *testing.T) {
	var tried []task.Format
	for _, c := range []struct {
		format task.Format
		data   string
	}{
		{task.LIBSVM, "1 1:1\n\n-1 1:1\n\r\n\n"},
		{task.JSONL, "{\"y\":1,\"x\":1}\n\n{\"y\":1,\"x\":1}\n\r\n\n"},
		{task.CSV, "y,x\n1,1\n\n1,1\n\r\n\n"},
		{task.CSV, "\n\r\ny,x\n1,1\n\n1,1\n\r\n\n"}, // not before the header
	} {
		tried = append(tried, c.format)
		for blanks, want := range map[bool]string{true: "[true false true false false]", false: "[true true]"} {
			schema := task.Schema{Events: task.Events{Format: c.format, MaxLine: 100, Separator: ","}, Label: "y", Dimension: 1,
				Blanks: blanks}
			if c.format != task.LIBSVM {
				schema.Columns, schema.Kinds = []string{"x"}, []task.ColumnKind{task.Numeric}
			}
			schema.Events.Header = c.format == task.CSV
			rows, err := newRows(io.NopCloser(strings.NewReader(c.data)), schema)
			if err != nil {
				t.Fatal(err)
			}
			var fits []bool
			for {
				var row task.Row
				var bad *task.RowError
				err := rows.next(&row)
				if err == io.EOF {
					break
				}
				if err != nil && !errors.As(err, &bad) {
					t.Fatal(err)
				}
				fits = append(fits, bad == nil)
			}
			if got := fmt.Sprint(fits); got != want {
				t.Errorf("%s, empty lines are rows %t: %s, want %s", c.format, blanks, got, want)
			}
		}
	}
	wantFormats(t, tried, task.IDX, task.Parquet) // which have no lines
}
