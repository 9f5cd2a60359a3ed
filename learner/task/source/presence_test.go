package source

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/test/parquettest"
	"github.com/panlearn/panlearn/learner/task"
)

// hostile are texts that a person may have written into their own line: without a line break, and not empty.
var hostile = []string{" ", "\t", "\t\t", ";;", ",,", ",", `"`, `"open`, `a"b`, "#", "# x", "|1x3 Cross validator", "%",
	"\x00", "\xff\xfe", "\ufeff", "\r\r",
	"NaN", "null", "{", "}", "[]", "{}", `{"age":NaN}`, `{"age":{"age":[1]}}`, `{"age":1}}`,
	`{"age":1,"age":2,"job":"a","y":1}`, strings.Repeat("[", 1<<17),
	strings.Repeat("x", 300), strings.Repeat(",", 300), strings.Repeat(`"`, 301), "1 9:1", "1 1:NaN", "1 :", "PAR1",
	"\x1f", "(", "1", "-"}

// outcomesOf returns rows as tests compare them, with their keys and people.
func outcomesOf(t *testing.T, data []byte, m *task.FeatureMap, user string) (out []string) {
	t.Helper()
	schema := m.Schema()
	schema.User = user
	rows, err := newRows(bytes.NewReader(data), schema)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reader{opened: &opened{rows: rows}}
	for row, err := range r.All() {
		out = append(out, fmt.Sprintf("%d %q %q %q %v %v %q %v", row.Number, row.Key, row.User, row.Fields, row.Index,
			row.Value, row.Label, err))
	}
	return out
}

// TestContentMovesNoRow: whatever the line of one person holds, as many rows come out of data as there are
// lines, and those of others are as they were, under the same numbers and keys.
func TestContentMovesNoRow(t *testing.T) {
	var tried []task.Format
	for name, f := range map[string]struct {
		task, head string
		user       string // column
		sets       []string
		line       func(i int) string
		keyed      func(i int, content string) string // nil: rows have no keys
	}{
		"libsvm": {task: svmTask, line: func(i int) string { return fmt.Sprintf("1 1:%d", i) }},
		"csv":    {task: csvTask, head: "age,job,y\n", line: func(i int) string { return fmt.Sprintf("%d,a,1", i) }},
		"tsv": {task: csvTask, head: "age\tjob\ty\n", sets: []string{`events.separator="\t"`},
			line: func(i int) string { return fmt.Sprintf("%d\ta\t1", i) }},
		"csv without header": {task: csvTask, sets: []string{"events.header=false", "events.columns=[age, job, y]"},
			line: func(i int) string { return fmt.Sprintf("%d,a,1", i) }},
		"jsonl": {task: jsonTask, line: func(i int) string { return fmt.Sprintf(`{"age":%d,"job":"a","y":1}`, i) }},
		"csv with keys": {task: csvTask, head: "id,age,job,y\n", sets: []string{"events.key=id"},
			line:  func(i int) string { return fmt.Sprintf("p%d,%d,a,1", i, i) },
			keyed: func(i int, content string) string { return fmt.Sprintf("p%d,%s", i, content) }},
		"jsonl with keys": {task: jsonTask, sets: []string{"events.key=id"},
			line:  func(i int) string { return fmt.Sprintf(`{"id":"p%d","age":%d,"job":"a","y":1}`, i, i) },
			keyed: func(i int, content string) string { return fmt.Sprintf(`{"id":"p%d","age":%s`, i, content) }},
		"csv with people": {task: csvTask, head: "id,age,job,y\n", user: "id",
			line:  func(i int) string { return fmt.Sprintf("p%d,%d,a,1", i%7, i) },
			keyed: func(i int, content string) string { return fmt.Sprintf("p%d,%s", i%7, content) }},
		"jsonl with keys and people": {task: jsonTask, user: "id", sets: []string{"events.key=event"},
			line: func(i int) string { return fmt.Sprintf(`{"event":%d,"id":"p%d","age":%d,"job":"a","y":1}`, i, i%7, i) },
			keyed: func(i int, content string) string {
				return fmt.Sprintf(`{"event":%d,"id":"p%d","age":%s`, i, i%7, content)
			}},
		"jsonl with keys that are numbers": {task: jsonTask, sets: []string{"events.key=id"},
			line:  func(i int) string { return fmt.Sprintf(`{"id":%d,"age":%d,"job":"a","y":1}`, i, i) },
			keyed: func(i int, content string) string { return fmt.Sprintf(`{"id": %d, "age":%s`, i, content) }},
	} {
		m := compile(t, f.task, f.sets...)
		tried = append(tried, m.Schema().Events.Format)
		const rows = 20
		honest := make([]string, rows)
		for i := range honest {
			honest[i] = f.line(i)
		}
		for _, end := range []string{"\n", "\r\n"} {
			want := outcomesOf(t, []byte(f.head+strings.Join(honest, end)+end), m, f.user)
			if len(want) != rows {
				t.Fatalf("%s: %d rows", name, len(want))
			}
			for k, content := range hostile {
				at := k % rows
				lines := slices.Clone(honest)
				if lines[at] = content; f.keyed != nil {
					lines[at] = f.keyed(at, content)
				}
				got := outcomesOf(t, []byte(f.head+strings.Join(lines, end)+end), m, f.user)
				if len(got) != rows {
					t.Errorf("%s, line %d is %.40q: %d rows", name, at, content, len(got))
					continue
				}
				if f.keyed != nil && strings.Join(strings.Fields(got[at])[:3], " ") != strings.Join(strings.Fields(want[at])[:3],
					" ") {
					t.Errorf("%s, line %d is %.40q: it has another number or key: %.60s", name, at, content, got[at])
				}
				got[at] = want[at]
				if !slices.Equal(got, want) {
					t.Errorf("%s, line %d is %.40q: other rows are not as they were", name, at, content)
				}
			}
		}
	}
	wantFormats(t, tried, task.IDX, task.Parquet) // which have no lines
}

// TestLargePageIsInvalidRows: a page that is too large is invalid rows, as many as it holds, and the rest is
// read: columns, dictionaries and keys alike.
func TestLargePageIsInvalidRows(t *testing.T) {
	const rows, mine = 400, 137
	for name, node := range map[string]library.Node{"plain": library.String(),
		"dictionary": library.Encoded(library.String(), &library.RLEDictionary)} {
		file := func(content any) *parquetRows {
			var cells [][]any
			for i := range rows {
				cells = append(cells, []any{fmt.Sprintf("p%d", i), int64(i), "a", int64(i % 2)})
			}
			cells[mine][2] = content
			data, err := parquettest.Encode([]parquettest.Column{{Name: "id"}, {Name: "age"}, {Name: "job", Node: node},
				{Name: "y"}}, cells,
				library.MaxRowsPerRowGroup(100), library.PageBufferSize(64))
			if err != nil {
				t.Fatal(err)
			}
			r, err := newParquetRows(bytes.NewReader(data), int64(len(data)), compile(t, jsonTask, "events.format=parquet",
				"events.key=id").Schema())
			if err != nil {
				t.Fatal(err)
			}
			r.page = 4 << 10
			return r
		}
		for content, most := range map[any]int{"a": 0, nil: 0, strings.Repeat("x", 1000): 1,
			strings.Repeat("x", 1<<17): 100} {
			r := &Reader{opened: &opened{rows: file(content)}}
			n, invalid := 0, 0
			for row, err := range r.All() {
				if row.Number != int64(n) || row.Key != fmt.Sprintf("p%d", n) {
					t.Fatalf("%s: row %d has number %d and key %q: %v", name, n, row.Number, row.Key, err)
				}
				if n++; err != nil {
					if invalid++; n <= 100 || n > 200 {
						t.Errorf("%s: row %d, of another group: %v", name, n-1, err)
					}
				}
			}
			if n != rows || invalid > most || (invalid > 0) != (most > 0) {
				t.Errorf("%s, a value of %d bytes: %d rows, %d of them invalid", name, len(fmt.Sprint(content)), n, invalid)
			}
		}
	}
}

// TestPixelsMoveNoRow: IDX has its rows by their number alone.
func TestPixelsMoveNoRow(t *testing.T) {
	m := compile(t, idxTask)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		pixels, labels := make([]byte, 4*50), make([]byte, 50)
		for i := range pixels {
			pixels[i] = byte(random.Uint32())
		}
		for i := range labels {
			labels[i] = byte(random.Uint32())
		}
		a, b := idxFiles(pixels, labels)
		r, err := Open(write(t, a)+","+write(t, b), m)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for row, err := range r.All() {
			if err != nil || row.Number != int64(n) {
				t.Fatal(row.Number, err)
			}
			n++
		}
		if n != 50 {
			t.Errorf("%d rows", n)
		}
	}
}

// TestRowsDoNotWait: a row of a stream is handed out when it is there, whatever it holds and however short it
// is: none waits for one that fits, nor for more bytes.
func TestRowsDoNotWait(t *testing.T) {
	for _, f := range []struct{ task, lines string }{
		{svmTask, "x\n9\nP\n1 1:1\n"}, {jsonTask, "P\n{}\nnull\n[]\n"}, {csvTask, "age,job,y\nx\nP\n,,\n1,a,1\n"},
	} {
		m := compile(t, f.task)
		lines := strings.SplitAfter(strings.TrimSuffix(f.lines, "\n"), "\n")
		if strings.HasPrefix(f.lines, "age") { // the header comes with Open
			lines = append([]string{lines[0] + lines[1]}, lines[2:]...)
		}
		stream := &drip{t: t}
		var r *Reader
		for i, line := range lines {
			stream.next = []byte(strings.TrimSuffix(line, "\n") + "\n")
			if r == nil {
				var err error
				if r, err = New(stream, m); err != nil {
					t.Fatal(err)
				}
			}
			row, err := r.Next()
			if err != nil && row.Line == 0 {
				t.Fatalf("line %d: %v", i, err)
			}
		}
	}
}

// A drip gives what is there, and fails the test where more is asked for.
type drip struct {
	t    *testing.T
	next []byte
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.next) == 0 {
		d.t.Fatal("a row waits for what comes after it")
	}
	n := copy(p, d.next)
	d.next = d.next[n:]
	return n, nil
}

// TestCutKeyIsNone: a key that the end of the data may have cut off is none: another, longer one would be the
// same row again.
func TestCutKeyIsNone(t *testing.T) {
	for _, f := range []struct {
		task, data string
		keys       []string
	}{
		{csvTask, "age,job,y,id\n1,a,1,p1\n1,a,1,p2", []string{"p1", ""}},
		{csvTask, "age,job,y,id\n1,a,1,\"p1\"\n1,a,1,\"p2\"", []string{"p1", ""}},
		{csvTask, "id,age,job,y\np1,1,a,1\np2,1,a", []string{"p1", "p2"}},
		{csvTask, "id,age,job,y\np1,1,a,1\n\"p\"\"2\",1\np", []string{"p1", `p"2`, ""}},
		{csvTask, "age,job,y,id\n1,a,1,p1\r\n1,a,1,p2\r", []string{"p1", ""}},
		// too long to be held
		{csvTask, "id,age,job,y\np1" + strings.Repeat(" ", 100) + ",1,a,1\np1" + strings.Repeat(" ", 5000) + "x,1,a,1\n",
			[]string{"p1", ""}},
		{jsonTask, `{"age":1,"y":1,"id":17}` + "\n" + `{"age":1,"y":1,"id":17`, []string{"17", ""}},
		{jsonTask, `{"y":1,"id":"p1"` + "\n" + `{"y":1,"id":"p`, []string{"p1", ""}},
	} {
		r, err := New(strings.NewReader(f.data), compile(t, f.task, "events.key=id"))
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for row := range r.All() {
			keys = append(keys, row.Key)
		}
		if !slices.Equal(keys, f.keys) {
			t.Errorf("%q: keys %q, want %q", f.data, keys, f.keys)
		}
	}
}
