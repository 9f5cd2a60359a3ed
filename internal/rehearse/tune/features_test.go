package tune

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// TestNamesOfNumbers: Fourier features are tried of columns by the names that the declaration gives them, which parts of
// dates and ratios have of their own.
func TestNamesOfNumbers(t *testing.T) {
	spec, err := task.Parse([]byte(`
version: 1
name: demo
events: {format: jsonl}
features:
  columns:
    - {column: hour, field: at, part: hour, kind: numeric, max: 24}
    - {column: burden, field: debt, over: income, kind: numeric, max: 2}
    - {column: debt, kind: numeric, max: 9}
label: {column: y, max: 40}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	at, names := numbersOf(features)
	if !slices.Equal(at, []int{0, 1, 2}) || !slices.Equal(names, []string{"hour", "burden", "debt"}) {
		t.Errorf("%v %q", at, names)
	}
}
