package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulatedRowsThatDoNotFit checks that rows without a label, which report the zero vector, teach nothing and are
// not in the training loss. If they were, models without noise would be worse than the best constant, which is computed
// from the other rows.
func TestSimulatedRowsThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	declaration, data := filepath.Join(dir, "half.yaml"), filepath.Join(dir, "half.csv")
	rows := "x,y\n"
	for i := range 300 {
		v := 0.2 + float64(i%9)/10
		rows += fmt.Sprintf("%v,%v\n%v,\n", v, v-0.9+0.01*float64(i%2), v)
	}
	for name, content := range map[string]string{data: rows, declaration: `version: 1
name: half
events: {format: csv, header: true}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1}]}
label: {column: y, min: -1, max: 1}
model: {loss: squared}
privacy: {epsilon: 1, delta: 1e-4}
schedule: {users: 600}
`} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, out := newSimulate(), new(bytes.Buffer)
	c.SetArgs([]string{"-f", declaration, "--data", data, "--baselines", "exact,converged", "--json"})
	c.SetOut(out)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	type loss struct {
		TrainLoss float64 `json:"train_loss"`
	}
	var report struct {
		Baseline  loss
		Baselines []struct {
			Name string
			Mean loss
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for _, b := range report.Baselines {
		if got, best := b.Mean.TrainLoss, report.Baseline.TrainLoss; got > 2*best/3 {
			t.Errorf("%s: training loss %v, %v of the best constant", b.Name, got, best)
		}
	}
}

// TestSplitWantsSilos: --split is refused where a task has no silos.
func TestSplitWantsSilos(t *testing.T) {
	c := newSimulate()
	c.SetArgs([]string{"-f", "../../deploy/tasks/quickstart.yaml", "--data", "events.libsvm", "--split", "label"})
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "declares silos") {
		t.Errorf("--split of a task without silos: %v", err)
	}
}
