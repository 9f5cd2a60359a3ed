package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/test/parquettest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

const pixelTask = `
version: 1
name: demo
events: {format: csv, header: true}
features:
  columns:
    - {column: p0, kind: numeric, min: 0, max: 255, scale: unit}
    - {column: p1, kind: numeric, min: 0, max: 255, scale: unit}
    - {column: p2, kind: numeric, min: 0, max: 255, scale: unit}
    - {column: p3, kind: numeric, min: 0, max: 255, scale: unit}
label: {column: "y", positive: ["1", "3"], negative: ["0", "2"]}
` + rest

// examplesOf maps everything; an invalid row is an example without values.
func examplesOf(t *testing.T, path string, m *task.FeatureMap) (out []convex.Example) {
	out, _ = examplesAndUsers(t, path, m, "")
	return out
}

// examplesAndUsers returns the examples, and the person of each row, read from a column.
func examplesAndUsers(t *testing.T, path string, m *task.FeatureMap, user string) (out []convex.Example,
	users []string) {
	t.Helper()
	schema := m.Schema()
	schema.User = user
	r, err := openData(path, schema)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range r.All() {
		var e convex.Example
		if err == nil {
			err = m.Map(row, &e)
		}
		var bad *task.RowError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		if err != nil {
			e = convex.Example{}
		}
		out, users = append(out, e), append(users, row.User)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out, users
}

func dense(e convex.Example, dim int) []float64 {
	if e.Index == nil {
		return e.Value
	}
	out := make([]float64, dim)
	for k, i := range e.Index {
		out[i] = e.Value[k]
	}
	return out
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// TestSameTableInEveryFormat checks that one table, written in every format and compression, gives the examples that
// were worked out by hand, and the same people where the format names them: by a word or an integer, also in a row
// that is no event.
func TestSameTableInEveryFormat(t *testing.T) {
	table := [][5]byte{{0, 51, 255, 102, 1}, {255, 255, 255, 255, 0}, {0, 0, 0, 0, 3}, {5, 0, 15, 0, 2}}
	// and the intercept
	want := [][]float64{{0, 0.2, 1, 0.4, 1}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 1}, {5. / 255, 0, 15. / 255, 0, 1}}
	labels := []float64{1, -1, 1, -1}
	words, numbers := []string{"zoë", "7", "", "zoë"}, []int64{7, -3, 7, 9223372036854775807}
	texts := []string{"7", "-3", "7", "9223372036854775807"}

	var csv, jsonl, svm strings.Builder
	csv.WriteString("p3,y,number,p0,word,p1,p2\n")
	var pixels, marks []byte
	var cells [][]any
	for i, r := range table {
		fmt.Fprintf(&csv, "%d,%d,%d,%d,%q,%d,%d\n", r[3], r[4], numbers[i], r[0], words[i], r[1], r[2])
		fmt.Fprintf(&jsonl, `{"p0":%d,"number":%d,"p1":"%d","p2":%d,"word":%q,"p3":%d.0,"y":%d}`+"\n", r[0], numbers[i], r[1],
			r[2], words[i], r[3], r[4])
		fmt.Fprintf(&svm, "%d 1:%d 3:%d 4:%d", r[4], r[0], r[2], r[3])
		svm.WriteString("\n")
		pixels, marks = append(pixels, r[:4]...), append(marks, r[4])
		cells = append(cells, []any{int32(r[0]), int64(r[1]), float32(r[2]), float64(r[3]), int64(r[4]), words[i],
			numbers[i]})
		if words[i] == "" {
			cells[i][5] = nil
		}
	}
	// LIBSVM lists what is not zero; the second feature is put in here, in order.
	lines := strings.Split(strings.TrimSpace(svm.String()), "\n")
	for i, r := range table {
		lines[i] = strings.Replace(lines[i], " 3:", fmt.Sprintf(" 2:%d 3:", r[1]), 1)
	}
	images, classes := idxFiles(pixels, marks)
	columns := []parquettest.Column{{Name: "p0"}, {Name: "p1"}, {Name: "p2"}, {Name: "p3"}, {Name: "y"}, {Name: "word"},
		{Name: "number"}}
	type file struct {
		format string
		paths  []string
	}
	var files []file
	add := func(format string, data ...[]byte) {
		var paths []string
		for _, d := range data {
			paths = append(paths, write(t, d))
		}
		files = append(files, file{format, paths})
	}
	for _, pack := range []func(testing.TB, []byte) []byte{func(_ testing.TB, b []byte) []byte { return b }, zip, zstdOf} {
		add("csv", pack(t, []byte(csv.String())))
		add("jsonl", pack(t, []byte(jsonl.String())))
		add("libsvm", pack(t, []byte(strings.Join(lines, "\n"))))
		add("idx", pack(t, images), pack(t, classes))
	}
	for _, codec := range []library.WriterOption{library.Compression(&library.Uncompressed),
		library.Compression(&library.Snappy),
		library.Compression(&library.Gzip), library.Compression(&library.Zstd)} {
		data, err := parquettest.Encode(columns, cells, codec)
		if err != nil {
			t.Fatal(err)
		}
		add("parquet", data)
	}
	var tried []task.Format
	for _, f := range files {
		tried = append(tried, task.Format(f.format))
		file, sets := pixelTask, []string{"events.format=" + f.format, fmt.Sprintf("events.header=%v", f.format == "csv")}
		people := [][]string{words, texts}
		if f.format == "libsvm" || f.format == "idx" {
			file, sets, people = idxTask, sets[:1], nil
		}
		for i, want := range people {
			m := compile(t, file, sets...)
			if _, got := examplesAndUsers(t, strings.Join(f.paths, ","), m, []string{"word", "number"}[i]); !slices.Equal(got,
				want) {
				t.Errorf("%s: rows of %q, want %q", f.format, got, want)
			}
			if m.Dim() != 5 {
				t.Errorf("%s: %d coordinates: who somebody is is no feature", f.format, m.Dim())
			}
		}
		m := compile(t, file, sets...)
		got, nobody := examplesAndUsers(t, strings.Join(f.paths, ","), m, "")
		if strings.Join(nobody, "") != "" {
			t.Errorf("%s: %q without a column of people", f.format, nobody)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d examples", f.format, len(got))
			continue
		}
		for i, e := range got {
			if !slices.Equal(dense(e, m.Dim()), want[i]) || e.Label != labels[i] {
				t.Errorf("%s, row %d: %v, label %v, want %v, %v", f.format, i, dense(e, m.Dim()), e.Label, want[i], labels[i])
			}
		}
	}
	wantFormats(t, tried)
}

// TestParquetNulls: a null is to Parquet what an empty field is to csv, and a boolean what it is to jsonl.
func TestParquetNulls(t *testing.T) {
	m := compile(t, jsonTask, "events.format=parquet", `label.positive=["true"]`, `label.negative=["false"]`)
	data, err := parquettest.Encode([]parquettest.Column{{Name: "age"}, {Name: "job"}, {Name: "y"}, {Name: "more"}},
		[][]any{
			{int64(30), "a", true, nil}, {nil, "a", false, nil}, {int64(40), nil, true, nil},
			{int64(50), strings.Repeat("z", 200), true, nil}, {int64(50), "a", nil, "x"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(write(t, data), m)
	if err != nil {
		t.Fatal(err)
	}
	check(t, outcomes(t, r), []outcome{{1, 0, "30|a|true"}, {2, 1, "|a|false"}, {3, 2, "40||true"}, {4, 3, "bad "},
		{5, 4, "50|a|"}})
}

// TestParquetRefusals checks that a refusal names the file, the column, what was wanted and what was found.
func TestParquetRefusals(t *testing.T) {
	m := compile(t, jsonTask, "events.format=parquet")
	encode := func(age, job any) []byte {
		data, err := parquettest.Encode([]parquettest.Column{{Name: "age"}, {Name: "job"}, {Name: "y"}},
			[][]any{{age, job, int64(1)}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := encode(int64(1), "a")
	for _, c := range []struct {
		data []byte
		want string
	}{
		{encode("secret", "a"),
			`column "age": want a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE), found BYTE_ARRAY (STRING)`},
		{encode(int64(1), 0.5), `column "job": want a word (a string, INT32, INT64 or BOOLEAN), found DOUBLE`},
		{good[:len(good)-1], "not the whole of one"},
		{nil, "too short"},
		{[]byte("age,job,y\n1,a,1\n"), "not a Parquet file"},
		{zip(t, good), "compressed as a whole"},
		{zstdOf(t, good), "compressed as a whole"},
	} {
		path := write(t, c.data)
		_, err := Open(path, m)
		var schema *SchemaError
		if !errors.As(err, &schema) || !strings.Contains(err.Error(), c.want) || schema.Path != path ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want a SchemaError with %q", err, c.want)
		}
	}
	if _, err := New(bytes.NewReader(good), m); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("from a stream: %v", err)
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdin = r
	defer r.Close()
	defer w.Close()
	if _, err := Open("-", m); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("from standard input: %v", err)
	}
	if _, err := Open(write(t, good), compile(t, csvTask)); err == nil ||
		!strings.Contains(err.Error(), "it is a Parquet file") {
		t.Errorf("as csv: %v", err)
	}
}

// TestParquetDamage: damage in the middle of a Parquet file ends the reading with an error that names row and
// column.
func TestParquetDamage(t *testing.T) {
	var cells [][]any
	for i := range 100 {
		cells = append(cells, []any{int64(i), "a", int64(i % 2)})
	}
	data, err := parquettest.Encode([]parquettest.Column{{Name: "age"}, {Name: "job"}, {Name: "y"}}, cells,
		library.MaxRowsPerRowGroup(50))
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.Index(data, []byte{50, 0, 0, 0, 0, 0, 0, 0, 51}) // the first values of the second group
	for i := range 8 {
		data[second-1-i] = 0xff // the levels before them
	}
	r, err := Open(write(t, data), compile(t, jsonTask, "events.format=parquet"))
	n := 0
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if n != 51 || err == io.EOF || !strings.Contains(err.Error(), `row 51: column "age"`) {
		t.Errorf("call %d: %v", n, err)
	}
}

// TestAdultAsParquet: Adult as a Parquet file gives the examples of Adult as csv, bit by bit.
func TestAdultAsParquet(t *testing.T) {
	folder := dataFolder(t)
	if folder == "" {
		return
	}
	path := filepath.Join(folder, "adult", "adult.test.gz")
	s, err := task.Load(filepath.Join("..", "..", "..", "deploy", "tasks", "adult.yaml"), []string{"events.skip_lines=1"})
	if err != nil {
		t.Fatal(err)
	}
	of, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	schema := of.Schema()
	var columns []parquettest.Column
	for _, name := range append(slices.Clone(schema.Columns), schema.Label) {
		columns = append(columns, parquettest.Column{Name: name})
	}
	r, err := Open(path, of)
	if err != nil {
		t.Fatal(err)
	}
	var cells [][]any
	for row, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		var line []any
		for i, f := range row.Fields {
			if schema.Kinds[i] != task.Numeric {
				line = append(line, f)
				continue
			}
			var v int64
			if _, err := fmt.Sscan(f, &v); err != nil {
				t.Fatal(err)
			}
			line = append(line, v)
		}
		cells = append(cells, append(line, row.Label))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := parquettest.Encode(columns, cells, library.Compression(&library.Zstd), library.MaxRowsPerRowGroup(5000))
	if err != nil {
		t.Fatal(err)
	}
	as, err := s.ReadAs(task.Parquet)
	if err != nil {
		t.Fatal(err)
	}
	m, err := as.Compile()
	if err != nil {
		t.Fatal(err)
	}
	want, got := examplesOf(t, path, of), examplesOf(t, write(t, data), m)
	if len(got) != 16281 || len(want) != len(got) {
		t.Fatalf("%d examples from csv, %d from Parquet", len(want), len(got))
	}
	for i := range got {
		if got[i].Label != want[i].Label || !slices.Equal(got[i].Index, want[i].Index) ||
			!slices.EqualFunc(got[i].Value, want[i].Value,
				func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
			t.Fatalf("row %d differs", i)
		}
	}
}
