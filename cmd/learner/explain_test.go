package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// crossed is a task of two words, their cross, and a number of which products are made.
const crossed = `
version: 1
name: crossed
events: {format: csv, header: true}
features:
  columns:
    - {column: job, kind: categorical, vocabulary: [a, b]}
    - {column: soil, kind: categorical, vocabulary: [c, d]}
    - {column: x, kind: numeric, min: 0, max: 1}
    - {column: z, kind: numeric, min: 0, max: 1}
  crosses: [{columns: [job, soil]}]
  polynomial: {columns: [x, z], degree: 2}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

// TestExplainSaysWhatItCannot: without data, columns whose values the declaration does not list are counted in a
// sentence; with data each has a spread, and there is nothing to say.
func TestExplainSaysWhatItCannot(t *testing.T) {
	spec, err := task.Parse([]byte(crossed), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, err := released.Of(spec, make([]float64, features.Dim()))
	if err != nil {
		t.Fatal(err)
	}
	s.Privacy.HonestFraction = accounting.One
	doc, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, data := filepath.Join(dir, "model.json"), filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, []byte("job,soil,x,z\na,c,0,1\nb,d,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = "4 columns have no declared values: give --data"
	for _, c := range []struct {
		args []string
		want bool
	}{{nil, true}, {[]string{"--columns", "2"}, true}, {[]string{"--data", data}, false}, {[]string{"--json"}, false}} {
		var out strings.Builder
		command := newExplain()
		command.SetArgs(append([]string{"--model", file}, c.args...))
		command.SetOut(&out)
		command.SetErr(&out)
		if err := command.Execute(); err != nil || strings.Contains(out.String(), says) != c.want ||
			!strings.Contains(out.String(), "job x soil") && len(c.args) == 0 {
			t.Errorf("%v: %v\n%s", c.args, err, out.String())
		}
	}
}
