package source

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// readAll checks what holds for all data: reading ends, lines increase, and whatever the feature map accepts is a
// valid example within the bound.
func readAll(t *testing.T, r *Reader, m *task.FeatureMap) {
	t.Helper()
	var e convex.Example
	var line int64
	for row, err := range r.All() {
		var bad *task.RowError
		if err != nil && !errors.As(err, &bad) {
			break
		}
		if row.Number != row.Line-1 || row.Line <= line {
			t.Fatalf("row %d at line %d follows line %d", row.Number, row.Line, line)
		}
		line = row.Line
		if bad != nil {
			if bad.Line != row.Line {
				t.Fatalf("the error says line %d, the row %d", bad.Line, row.Line)
			}
			continue
		}
		if err := m.Map(row, &e); err != nil {
			if !errors.As(err, &bad) || bad.Line != row.Line {
				t.Fatalf("map: %v", err)
			}
			continue
		}
		if err := e.Validate(m.Dim()); err != nil {
			t.Fatal(err)
		}
		if e.Norm() > m.Bound() {
			t.Fatalf("norm %v above %v", e.Norm(), m.Bound())
		}
	}
	if _, err := r.Next(); err == nil {
		t.Fatal("a row after the end")
	}
}

// readRows reads what a format makes of two inputs or more, if it takes them.
func readRows(t *testing.T, m *task.FeatureMap) func(rows, error) {
	return func(in rows, err error) {
		if err != nil {
			return
		}
		readAll(t, &Reader{opened: &opened{rows: in, close: in.close}}, m)
	}
}

// fuzzLines gives the data after a good first line, so that the check of the schema does not stop the fuzzer.
func fuzzLines(f *testing.F, file, first string, seeds ...string) {
	m := compile(f, file)
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add(zip(f, []byte(first)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, all := range [][]byte{data, append([]byte(first), data...)} {
			if r, err := New(bytes.NewReader(all), m); err == nil {
				readAll(t, r, m)
			}
		}
	})
}

func FuzzLIBSVM(f *testing.F) {
	fuzzLines(f, svmTask, "1 1:1\n", "-1 2:0.5 5:1e3 # x\n\n%\n1 5:-1", "1 1:1 1:1\n1 qid:3 1:1\n")
}

func FuzzCSV(f *testing.F) {
	fuzzLines(f, csvTask, "age,job,y\n1,a,1\n", "2,\"b, c\",0\r\n3,\"say \"\"x\"\"\",1\n", "\"\"\"\",,\n\",,\n")
}

func FuzzJSONL(f *testing.F) {
	fuzzLines(f, jsonTask, `{"age":1,"job":"a","y":1}`+"\n", `{"y":0,"x":[{}],"age":"3","job":null}`, "{}\n[]\n{\"age\"")
}

func FuzzIDX(f *testing.F) {
	m := compile(f, idxTask)
	images, labels := idxFiles([]byte{0, 1, 2, 3, 255, 0, 0, 7}, []byte{3, 0})
	f.Add(images, labels)
	f.Add(zip(f, images), labels)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		images, err := inflate(bytes.NewReader(a))
		if err != nil {
			return
		}
		labels, err := inflate(bytes.NewReader(b))
		if err != nil {
			return
		}
		readRows(t, m)(newIDX(images, labels, task.Schema{Dimension: 4}))
	})
}

// FuzzSplitCSV: on a line without blanks around fields our splitter and the standard library's reader agree.
func FuzzSplitCSV(f *testing.F) {
	for _, s := range []string{`a,b`, `"a,""b""",c`, `,`, `"`, `a"b`, `"a"b`, `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n \t") || line == "" {
			return
		}
		got, err := splitCSV(nil, line, ',')
		r := csv.NewReader(strings.NewReader(line))
		want, wantErr := r.Read()
		if (err == nil) != (wantErr == nil) || (err == nil && !slices.Equal(got, want)) {
			t.Fatalf("%q: got %q, %v; encoding/csv says %q, %v", line, got, err, want, wantErr)
		}
	})
}

// FuzzJSONIsStrict: every line that the JSON reader takes is one JSON object by the standard library's rules.
func FuzzJSONIsStrict(f *testing.F) {
	m := compile(f, jsonTask)
	f.Add(`{"age":1,"job":"a","y":1,}`)
	f.Add(`{"age":1 "job":"a","y":1}`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\ufeff") { // one line, and no byte order mark
			return
		}
		r, err := New(strings.NewReader(line), m)
		if err != nil {
			return
		}
		if _, err := r.Next(); err == nil && !json.Valid([]byte(line)) {
			t.Fatalf("accepted %q", line)
		}
	})
}
