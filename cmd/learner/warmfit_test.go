package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
)

const warmTask = `
version: 1
name: %s
events: {format: csv, header: true}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic%s}
privacy: {epsilon: 4, delta: 1e-6}
schedule: {rounds: {max: 3}}
`

// warmFit runs learner fit of a task file and returns its model and what it printed: as text, or as JSON.
func warmFit(t *testing.T, declaration, data, out string, args ...string) (model.Snapshot, string) {
	t.Helper()
	var said bytes.Buffer
	c := newFit()
	c.SetArgs(append([]string{"-f", declaration, "--data", data, "-o", out}, args...))
	c.SetOut(&said)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("fit of %s: %v", declaration, err)
	}
	doc, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	s, err := model.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	return s, said.String()
}

// TestFitFromAModelOfTheSameRows checks that a fit that begins with a model of the same rows costs them what both
// cost together, and that the model, the output of fit and its JSON all state that cost. The ledger, and status, have
// the fit's own charge, and status names the start.
func TestFitFromAModelOfTheSameRows(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	rows, rng := "x,y\n", rand.New(rand.NewPCG(1, 2))
	for range 500 {
		x := 2*rng.Float64() - 1
		rows += fmt.Sprintf("%v,%d\n", x, map[bool]int{true: 1}[x > rng.NormFloat64()/3])
	}
	for name, text := range map[string]string{"rows.csv": rows, "first.yaml": fmt.Sprintf(warmTask, "first", ""),
		"second.yaml": fmt.Sprintf(warmTask, "second", ", start: first.json"), "third.yaml": fmt.Sprintf(warmTask, "third",
			", start: second.json"),
		"fourth.yaml": fmt.Sprintf(warmTask, "fourth", ", start: public.json")} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := in("rows.csv")
	first, _ := warmFit(t, in("first.yaml"), data, in("first.json"), "--state", in("A"))
	second, said := warmFit(t, in("second.yaml"), data, in("second.json"), "--state", in("B"))
	if e := second.Privacy.Epsilon; first.Privacy.Epsilon < 3.5 || e < first.Privacy.Epsilon+3.5 || e > 8 ||
		second.Privacy.Delta < 2e-6 {
		t.Errorf("the first model states %v, the second %v", first.Privacy, second.Privacy)
	}
	if want := fmt.Sprintf("privacy       epsilon %.4f", second.Privacy.Epsilon); !strings.Contains(said, want) ||
		!strings.Contains(said, "in task first too") {
		t.Errorf("the second fit prints\n%s, want %s", said, want)
	}
	third, said := warmFit(t, in("third.yaml"), data, in("third.json"), "--state", in("C"), "--json")
	var report struct {
		Epsilon float64
		Start   model.Origin
	}
	if err := json.Unmarshal([]byte(said), &report); err != nil {
		t.Fatal(err)
	}
	if third.Privacy.Epsilon < second.Privacy.Epsilon+3.5 || report.Epsilon != third.Privacy.Epsilon ||
		*report.Start.Epsilon != second.Privacy.Epsilon {
		t.Errorf("the second model states %v, the third %v and prints %s", second.Privacy, third.Privacy, said)
	}
	_, said = warmFit(t, in("third.yaml"), data, in("public.json"), "--public")
	if !strings.Contains(said, "NOT PRIVATE") || !strings.Contains(said, "which states epsilon") {
		t.Errorf("a public fit from a model prints %s", said)
	}
	fourth, said := warmFit(t, in("fourth.yaml"), data, in("fourth.json"), "--state", in("D"))
	if fourth.Privacy.Epsilon > 4 || !strings.Contains(said, "states no epsilon, so it has to be public") {
		t.Errorf("from a model that promises nothing: %v, printed %s", fourth.Privacy, said)
	}
	var status bytes.Buffer
	c := newStatus()
	c.SetArgs([]string{"--state", in("B")})
	c.SetOut(&status)
	if err := c.ExecuteContext(t.Context()); err != nil || !strings.Contains(status.String(),
		"start         This is for people who are in task first too") {
		t.Errorf("status says %s: %v", status.String(), err)
	}
}
