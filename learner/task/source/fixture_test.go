package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

const rest = `
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`

const svmTask = `
version: 1
name: demo
events: {format: libsvm, max_line: 100}
features: {vector: {dimension: 5, min: -10, max: 10}}
label: {positive: ["1"], negative: ["-1"]}
` + rest

const csvTask = `
version: 1
name: demo
events: {format: csv, header: true, max_line: 100}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: job, kind: categorical, vocabulary: [a, "b, c", 'say "x"'], unknown: drop}
label: {column: "y", positive: ["1"], negative: ["0"]}
` + rest

const jsonTask = `
version: 1
name: demo
events: {format: jsonl, max_line: 200}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: job, kind: categorical, vocabulary: [a, "true"], unknown: drop}
label: {column: "y", positive: ["1"], negative: ["0"]}
` + rest

func compile(t testing.TB, file string, sets ...string) *task.FeatureMap {
	t.Helper()
	s, err := task.Parse([]byte(file), sets)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// outcome is a row as a test compares it: its position, and its contents or the error.
type outcome struct {
	line, number int64
	text         string // fields or index:value, then the label; or the column and reason of a RowError
}

// outcomes reads everything and fails on an error that ends the reading early.
func outcomes(t testing.TB, r *Reader) []outcome {
	t.Helper()
	var out []outcome
	for row, err := range r.All() {
		var bad *task.RowError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		o := outcome{line: row.Line, number: row.Number}
		if bad != nil {
			o.text = "bad " + bad.Column
		} else {
			o.text = strings.Join(append(append([]string{}, row.Fields...), row.Label), "|")
		}
		out = append(out, o)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t testing.TB, m *task.FeatureMap, data string) *Reader {
	t.Helper()
	r, err := New(strings.NewReader(data), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantFormats fails for each format that was not tried and is not one of the exceptions.
func wantFormats(t *testing.T, tried []task.Format, except ...task.Format) {
	t.Helper()
	for _, f := range task.Formats() {
		if !slices.Contains(tried, f) && !slices.Contains(except, f) {
			t.Errorf("not tried: format %s", f)
		}
	}
}

// dataFolder finds the public data sets, or reports loudly that a check did not run.
func dataFolder(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("PANLEARN_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "data")
	} else if !filepath.IsAbs(folder) {
		folder = filepath.Join("..", "..", "..", folder) // relative to the root of the repository
	}
	if _, err := os.Stat(folder); err != nil {
		notRun(t, "no public data sets at "+folder+"; set PANLEARN_DATA")
		return ""
	}
	return folder
}

// notRun reports in the test's log and on standard error that a check did not run.
func notRun(t testing.TB, why string) {
	t.Helper()
	t.Logf("NOT RUN: %s", why)
	_, _ = fmt.Fprintf(os.Stderr, "NOT RUN: %s: %s\n", t.Name(), why)
}
