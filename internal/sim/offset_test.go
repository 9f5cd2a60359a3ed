package sim

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// TestSchemaRowsWithAnOffset: synthetic labels lie around the public prediction, not all at a bound of the difference.
func TestSchemaRowsWithAnOffset(t *testing.T) {
	spec, err := task.Parse([]byte(`
version: 1
name: offset
events: {format: csv, columns: [age, y]}
features: {columns: [{column: age, kind: numeric, min: 0, max: 100}]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
model: {loss: squared}
label: {column: y, min: -10, max: 10}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Features.Public, err = task.NewPublic(&task.PublicModel{Version: 1, Sample: task.PublicSample{Rows: 9},
		Inputs: []string{"age"}, Offset: &task.PublicBlock{Outputs: 1, Bias: []float64{1000},
			Weights: task.NewMatrix([][]float64{{500}}, 16)}}); err != nil {
		t.Fatal(err)
	}
	spec.Label.Offset = true
	s, err := NewSchema(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows(s.features, 500, 2)
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for _, e := range rows {
		if e.Label <= -1 || e.Label >= 1 {
			cut++
		}
	}
	if cut > 50 {
		t.Errorf("%d of 500 labels are at a bound", cut)
	}
	low := slices.MinFunc(rows, func(a, b convex.Example) int { return int(a.Offset - b.Offset) }).Offset
	high := slices.MaxFunc(rows, func(a, b convex.Example) int { return int(a.Offset - b.Offset) }).Offset
	if low < 500 || high > 1500 || high-low < 100 {
		t.Errorf("offsets from %v to %v", low, high)
	}
}
