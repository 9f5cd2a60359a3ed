package model

import (
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// TestONNXOfRatios: a graph divides as the predictor does; a ratio by 0, of what is missing, or beyond all numbers is
// missing, and infinity makes the row invalid.
func TestONNXOfRatios(t *testing.T) {
	spec := parsed(t, `
version: 1
name: demo
events: {format: csv, header: true}
features:
  columns:
    - {column: share, field: part, over: whole, kind: numeric, min: -2, max: 3,
       missing: {tokens: [7], fill: 1.5, indicator: true}}
    - {column: steps, field: part, over: whole, kind: hats, knots: [-1, 0, 4]}
    - {column: level, field: part, over: whole, kind: bucketed, edges: [-1, 0.25]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 50}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`)
	snapshot, p := released(t, spec, 1, 2, 4, -3, 5, 6, 7, 8, 9)
	model, err := snapshot.ONNX()
	if err != nil {
		t.Fatal(err)
	}
	var rows []task.Row
	for _, x := range []string{"0", "1", "-3", "7", "1e300", "NaN", "Inf"} {
		for _, y := range []string{"2", "0", "-0", "7", "1e-300", "NaN", "-Inf"} {
			rows = append(rows, task.Row{Fields: []string{x, y}, Label: "1"})
		}
	}
	in := tensors(t, spec, rows)
	out := interpreted(t, model, in, false)
	for i, row := range rows {
		requireSame(t, spec, p, row, out, i)
	}
}
