package task_test

import (
	"fmt"
	"log"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A device parses the declaration, compiles it once, and maps every event.
func Example() {
	spec, err := task.Parse([]byte(`
version: 1
name: churn
events: {format: jsonl}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: plan, kind: categorical, vocabulary: [free, paid]}
label: {column: left, positive: ["true"], negative: ["false"]}
model: {loss: logistic, radius: 10}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000}
`), []string{"privacy.epsilon=0.5"})
	if err != nil {
		log.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		log.Fatal(err)
	}
	var e convex.Example
	if err := features.Map(task.Row{Fields: []string{"75", "paid"}, Label: "true"}, &e); err != nil {
		log.Fatal(err)
	}
	fmt.Println(features.Names(), e.Index, e.Value, e.Label)

	weights, intercept, err := features.Undo([]float64{1, -2, 2, 0.5})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(weights, intercept)

	_, err = spec.ReadAs(task.LIBSVM)
	fmt.Println(err)
	// Output:
	// [age plan=free plan=paid] [0 2 3] [0.5 1 1] 1
	// [0.02 -2 2] -0.5
	// task: features: want vector, and no columns, for format libsvm
}
