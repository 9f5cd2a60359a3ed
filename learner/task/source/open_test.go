package source

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/panlearn/panlearn/learner/task"
)

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGzipIsTransparent(t *testing.T) {
	m := compile(t, svmTask)
	plain := []byte("1 1:1\n-1 2:1\n")
	for _, data := range [][]byte{plain, zip(t, plain)} {
		r, err := Open(write(t, data), m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, outcomes(t, r), []outcome{{1, 0, "1"}, {2, 1, "-1"}})
	}
}

// TestDamageIsFatal: a file that ends early, or is damaged, is an error and not a shorter file.
func TestDamageIsFatal(t *testing.T) {
	m := compile(t, svmTask)
	data := zip(t, []byte(strings.Repeat("1 1:1\n-1 2:1\n", 1000)))
	for name, bad := range map[string][]byte{"truncated": data[:len(data)-9],
		"checksum": append(bytes.Clone(data[:len(data)-8]), make([]byte, 8)...)} {
		r, err := New(bytes.NewReader(bad), m)
		for err == nil {
			_, err = r.Next()
		}
		var row *task.RowError
		if err == io.EOF || errors.As(err, &row) || !strings.HasPrefix(err.Error(), `read data "-": after line `) {
			t.Errorf("%s: reading ended with %v", name, err)
		}
		if r != nil {
			if _, again := r.Next(); again != err {
				t.Errorf("%s: after %v came %v", name, err, again)
			}
		}
	}
	broken := errors.New("broken")
	r, err := New(io.MultiReader(strings.NewReader("1 1:1\n1 1:1\n1 "), iotest.ErrReader(broken)), m)
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// TestSchemaIsCheckedFirst: public data that do not match are refused by OpenFitting: a wrong header, or a
// beginning in which no event fits.
func TestSchemaIsCheckedFirst(t *testing.T) {
	fitting := func(data, file string) (*Reader, error) { return OpenFitting(write(t, []byte(data)), compile(t, file)) }
	for _, c := range []struct{ file, data, want string }{
		{csvTask, "age,job\n1,a\n", `column "y" is not in the header, whose fields between ',' are 2`},
		{csvTask, "age,job,y,age\n1,a,1,1\n", `column "age" is in the header twice`},
		{csvTask, "", "no header"},
		{csvTask, "age,job,y\nsecret,a,1\nx,a,1\n", "line 2, column age"},
		{csvTask, "age,job,y\n1,a,secret\n1,a,x\n", "line 2, column y"},
		{csvTask, "age,job,\"y\n", "header"},
		{jsonTask, `{"job": "a", "age": 1}` + "\n{}\n", "line 1, column y"},
		{jsonTask, `{"job": "a", "y": 1}` + "\n" + `{"job": "a", "y": 1}`, `none of the first 2 events has the key "age"`},
		{jsonTask, strings.Repeat(`{"job": "a", "y": 1}`+"\n", 16) + `{"age": 1, "job": "a", "y": 1}`,
			`none of the first 16 events has the key "age"`},
		{jsonTask, "age,job,y\n1,a,1\n", "line 1"},
		{svmTask, strings.Repeat("1 6:1\n", 15) + "1 7:1\n1 1:1\n", "line 1"},
		{svmTask, "secret 1:1\nsecret 1:1\n", "line 1, column label"},
	} {
		r, err := fitting(c.data, c.file)
		var schema *SchemaError
		if r != nil || !errors.As(err, &schema) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want a SchemaError with %q", c.data, err, c.want)
		}
	}
	if r, err := fitting("1 1:1\nsecret\n", svmTask); err != nil {
		t.Error(err)
	} else {
		// the feature map refuses the label, not the reader
		check(t, outcomes(t, r), []outcome{{1, 0, "1"}, {2, 1, "secret"}})
	}
	// A key that comes late is read.
	late := `{"job": "a", "y": 1}` + "\n" + `{"y": 0}` + "\n" + `{"age": 1, "job": "b", "y": 1}` + "\n" +
		`{"age": 2, "y": 1}` + "\n"
	if r, err := fitting(late, jsonTask); err != nil {
		t.Error(err)
	} else {
		check(t, outcomes(t, r), []outcome{{1, 0, "|a|1"}, {2, 1, "||0"}, {3, 2, "1|b|1"}, {4, 3, "2||1"}})
	}
	// One event that does not fit never decides whether the others are sent, nor whether it is sent itself.
	for data, want := range map[string]int{"secret 1:1\n": 1, "secret 1:1\n1 1:1\n": 2, strings.Repeat("1 6:1\n", 15) +
		"1 1:1\n": 16} {
		r, err := fitting(data, svmTask)
		if err != nil {
			t.Errorf("%d events: %v", want, err)
			continue
		}
		for n := range want {
			row, err := r.Next()
			var bad *task.RowError
			if row.Number != int64(n) || row.Line != int64(n+1) || (err != nil) != errors.As(err, &bad) ||
				(err == nil) != (n == want-1 && want > 1) {
				t.Errorf("%d events: event %d came as line %d, number %d: %v", want, n, row.Line, row.Number, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%d events: then %v", want, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), compile(t, svmTask)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// idxFiles encodes images of 2 x 2 pixels.
func idxFiles(pixels, labels []byte) (images, marks []byte) {
	images = binary.BigEndian.AppendUint32(images, 0x803)
	for _, v := range []int{len(labels), 2, 2} {
		images = binary.BigEndian.AppendUint32(images, uint32(v))
	}
	marks = binary.BigEndian.AppendUint32(marks, 0x801)
	marks = binary.BigEndian.AppendUint32(marks, uint32(len(labels)))
	return append(images, pixels...), append(marks, labels...)
}

const idxTask = `
version: 1
name: demo
events: {format: idx}
features: {vector: {dimension: 4, min: 0, max: 255, scale: unit}}
label: {positive: ["1", "3"], negative: ["0", "2"]}
` + rest

func TestIDX(t *testing.T) {
	m := compile(t, idxTask)
	images, labels := idxFiles([]byte{0, 1, 2, 3, 255, 0, 0, 7}, []byte{3, 0})
	r, err := Open(write(t, images)+","+write(t, zip(t, labels)), m)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for row, err := range r.All() {
		if err != nil || row.Index != nil || len(row.Value) != 4 {
			t.Fatalf("row %d: %v", row.Number, err)
		}
		sum = sum*1000 + row.Value[0]*10 + row.Value[3]
	}
	if sum != 3*1000+2557 {
		t.Errorf("pixels add up to %v", sum)
	}

	for name, bad := range map[string][2][]byte{
		"magic":     {labels, images},
		"count":     {images, append(bytes.Clone(labels[:7]), 1, 3)},
		"empty":     {nil, nil},
		"dimension": {append(bytes.Clone(images[:15]), 3), labels},
		"truncated": {images[:len(images)-5], labels},
		"no labels": {images, labels[:8]},
	} {
		r, err := Open(write(t, bad[0])+","+write(t, bad[1]), m)
		for err == nil {
			_, err = r.Next()
		}
		if err == io.EOF {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, path := range []string{write(t, images), "-"} {
		var schema *SchemaError
		if _, err := Open(path, m); !errors.As(err, &schema) || !strings.Contains(err.Error(), "images,labels") {
			t.Errorf("images without labels at %q: %v", path, err)
		}
	}
}

// TestRowsAreNamedByAColumn checks that a row takes its name from a column, whether the task reads the column
// or not.
func TestRowsAreNamedByAColumn(t *testing.T) {
	const file = "a,y,ward\n0.5,1,north\n0.25,0,south\nbad,1,north\n"
	m := compile(t,
		"version: 1\nname: n\nevents: {format: csv, header: true}\nfeatures: {columns: [{column: a, kind: numeric, min: 0, max: 1}]}\n"+
			"label: {column: y, positive: [\"1\"], negative: [\"0\"]}\nmodel: {loss: logistic}\nprivacy: {epsilon: 1, delta: 1e-6}\nschedule: {users: 100}\n")
	for column, want := range map[string][]string{"ward": {"north", "south", "north"}, "a": {"0.5", "0.25", "bad"},
		"y": {"1", "0", "1"}, "": {"", "", ""}} {
		r, err := OpenNamed(write(t, []byte(file)), m, column)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for row, err := range r.All() {
			var unfit *task.RowError
			if err != nil && !errors.As(err, &unfit) {
				t.Fatal(err)
			}
			got = append(got, row.User)
		}
		if err := r.Close(); err != nil || !slices.Equal(got, want) {
			t.Errorf("column %q: %q, %v; want %q", column, got, err, want)
		}
	}
}
