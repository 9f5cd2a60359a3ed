package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestTrainLossIsOfRowsThatFit checks that rows without a label, which report the zero vector, are not in the training
// loss: a model without privacy would be worse than the best constant, which is told of the others.
func TestTrainLossIsOfRowsThatFit(t *testing.T) {
	dir := t.TempDir()
	declaration, data := filepath.Join(dir, "half.yaml"), filepath.Join(dir, "half.csv")
	rows := "x,y\n"
	for i := range 300 {
		v := float64(i%9-4) / 8
		rows += fmt.Sprintf("%v,%v\n%v,\n", v, v/2+0.01*float64(i%2), v)
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
	c.SetArgs([]string{"-f", declaration, "--data", data, "--baselines", "converged", "--json"})
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
		Baselines []struct{ Mean loss }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if got, best := report.Baselines[0].Mean.TrainLoss, report.Baseline.TrainLoss; got > best/10 {
		t.Errorf("training loss %v of a fit without privacy, %v of the best constant", got, best)
	}
}
