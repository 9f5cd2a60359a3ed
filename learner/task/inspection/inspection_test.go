package inspection

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

const declared = `version: 1
name: t
events: {format: csv, header: true}
features:
  columns:
    - {column: height, kind: numeric, min: 0, max: 10, missing: {tokens: ["?"], fill: 5}}
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: colour, kind: categorical, vocabulary: [red, green]}
    - {column: other, kind: categorical, vocabulary: [a], unknown: other}
norm_bound: 1.6
label: {column: kind, positive: ["yes"], negative: ["no", "never"]}
model: {loss: logistic, radius: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`

func inspect(t *testing.T, file, data string) (*Report, error) {
	t.Helper()
	spec, err := task.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return Of(path, spec)
}

func TestReport(t *testing.T) {
	const secret = "secret"
	r, err := inspect(t, declared, "height,age,colour,other,kind\n"+
		"5,50,red,a,yes\n"+ // norm sqrt(0 + 0 + 1 + 1 + 1)
		"?,150,red,b,no\n"+ // missing, clamped
		",50,red,,never\n"+ // missing twice; a class by another word
		secret+",NA,"+secret+",a,yes\n"+ // three columns are invalid, one of them looks missing
		"5,50,green,a,"+secret+"\n"+
		"5,50\n"+
		"5,50,red,a,\n"+
		"5,50,blue,a,no\n"+
		"5,50,blue,a,no\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{Task: "t", Rows: 9, Invalid: 6, ClippedShare: 1. / 3, NormBound: 1.6,
		Columns: []Column{{"height", 1, 0, 2, 0}, {"age", 1, 1, 1, 0}, {"colour", 3, 0, 0, 0}, {"other", 0, 0, 1, 1},
			{"kind", 2, 0, 1, 0}},
		Norms: quantiles{math.Sqrt2, math.Sqrt(3), math.Sqrt(3), math.Sqrt(3)}, Labels: map[string]int{"no": 2, "yes": 1},
		LabelNames: []string{"no", "yes"},
		First: []badRow{{Line: 5, Column: "height", Reason: "not a finite number"}, {Line: 6, Column: "kind",
			Reason: "not one of the declared labels"},
			{Line: 7, Reason: "2 fields, want 5"}, {Line: 8, Column: "kind", Reason: "not one of the declared labels"},
			{Line: 9, Column: "colour", Reason: "not in the vocabulary"}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v\nwant %+v", r, want)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), secret) {
		t.Errorf("%v, %s", err, text)
	}
	if r.Unfit() != nil {
		t.Errorf("%v, though rows fit", r.Unfit())
	}
}

// TestReportOfNumbers: numbers are counted in quarters of their range, and labels outside are clamped.
func TestReportOfNumbers(t *testing.T) {
	file := strings.NewReplacer(`positive: ["yes"], negative: ["no", "never"]`, "min: -10, max: 30", "logistic",
		"squared").Replace(declared)
	var data strings.Builder
	data.WriteString("height,age,colour,other,kind\n")
	for i := range 100 {
		fmt.Fprintf(&data, "5,50,red,a,%d\n", i-20)
	}
	r, err := inspect(t, file, data.String())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"-10 to 0": 20, "0 to 10": 10, "10 to 20": 10, "20 to 30": 60}; !reflect.DeepEqual(r.Labels,
		want) {
		t.Errorf("labels %v, want %v", r.Labels, want)
	}
	if !strings.Contains(r.Advice, "--shuffle N") {
		t.Errorf("advice %q", r.Advice)
	}
	stream := strings.Replace(file, "schedule: {users: 1000", "schedule: {continuous: adaptive, users: 1000", 1)
	if s, err := inspect(t, stream, data.String()); err != nil || !s.Ordered ||
		!strings.Contains(s.Advice, "if it is that of time, leave it") {
		t.Errorf("rows of a stream without an end in an order: %+v, %v", s, err)
	}
	for _, c := range []struct{ schedule, want string }{{"", "Mix the rows of each file before"}, {"interactive: true, ",
		"all rows"}} {
		silo := strings.Replace(file, "schedule: {users: 1000", "silo: {count: 4, units: 100}\nschedule: {"+c.schedule+
			"deadline: 20s", 1)
		if r, err := inspect(t, silo, data.String()); err != nil || !r.Ordered || !strings.Contains(r.Advice, c.want) ||
			strings.Contains(r.Advice, "--shuffle") {
			t.Errorf("rows of a silo in an order: %v, %v", r, err)
		}
	}
	if label := r.Columns[4]; label.Clamped != 10+49 || !r.Ordered || r.OrderCorrelation < 0.8 {
		t.Errorf("%+v, ordered %v by %v", label, r.Ordered, r.OrderCorrelation)
	}
}

func TestReportOfVectors(t *testing.T) {
	file := "version: 1\nname: t\nevents: {format: libsvm}\nfeatures: {vector: {dimension: 3, min: 0, max: 1}}\n" +
		"label: {classes: [\"1\", \"2\", \"3\"]}\nmodel: {loss: softmax, radius: 1}\nprivacy: {epsilon: 1, delta: 1e-6}\nschedule: {users: 1000}\n"
	r, err := inspect(t, file, "1 1:1 2:0.5\n2 3:4\n3 4:1\n2\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := []Column{{"values", 0, 1, 0, 0}, {"label", 0, 0, 0, 0}}; !reflect.DeepEqual(r.Columns, want) ||
		r.Invalid != 1 || r.Rows != 4 {
		t.Errorf("%+v", r)
	}
	if want := map[string]int{"1": 1, "2": 2, "3": 0}; !reflect.DeepEqual(r.Labels, want) {
		t.Errorf("labels %v", r.Labels)
	}
}

// TestNothingFits checks the errors where nothing fits: no rows, no valid row, or no such columns.
func TestNothingFits(t *testing.T) {
	const header = "height,age,colour,other,kind\n"
	r, err := inspect(t, declared, header)
	if err != nil || r.Unfit() == nil || r.Unfit().Error() != "no rows" {
		t.Errorf("a header alone: %v, %v", err, r.Unfit())
	}
	r, err = inspect(t, declared, header+strings.Repeat("tall,old,red,a,yes\n", 30))
	if err != nil || r.Invalid != 30 || r.Unfit() == nil {
		t.Fatalf("no valid row: %v", err)
	}
	if got, want := r.Unfit().Error(), "none of the 30 rows fits the task; the first: row at line 2, column height: not a finite number"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	var schema *source.SchemaError
	if _, err := inspect(t, declared, "a,b\n1,2\n"); !errors.As(err, &schema) {
		t.Errorf("other columns: %v", err)
	}
}
