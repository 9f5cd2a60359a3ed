package model

import (
	"encoding/json"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// words is a task with words that writers of files like to escape.
const words = `
version: 1
name: words
events: {format: csv, columns: [age, kind, income]}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: kind, kind: categorical, vocabulary: ["a<b", "c&d"], unknown: drop}
label: {column: income, positive: [">50K"], negative: ["<=50K"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600, rounds: {max: 2}}
`

// numbers is the same with a number to predict.
var numbers = strings.NewReplacer(`positive: [">50K"], negative: ["<=50K"]`, `min: 0, max: 1000`, "logistic",
	"squared").Replace(words)

func parsed(t rapid.TB, file string) *task.Spec {
	t.Helper()
	spec, err := task.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// released returns the snapshot of a task whose parameters are theta, and its predictor; no theta is zeros.
func released(t rapid.TB, spec *task.Spec, theta ...float64) (Snapshot, Predictor) {
	t.Helper()
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	declaration, err := spec.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	s := Snapshot{
		FormatVersion: Version, Task: spec.Name, Round: 2, ModelVersion: 2, Loss: spec.Model.Loss,
		Features: features.Coordinates(),
		Classes:  features.Classes(), Probabilities: ProbabilitiesOf(spec, false),
		Privacy: Statement{Trust: "shuffle", Unit: "one event of one user in one round, replaced by any other", Epsilon: 1,
			Delta: 1e-6, HonestFraction: accounting.One, Users: 600},
		TaskHash: [32]byte{1, 2, 3}, Declaration: declaration, PublicModel: spec.Features.Public.Data(),
	}
	for block := range slices.Chunk(theta, features.Dim()) {
		weights, intercept, err := features.Undo(block)
		if err != nil {
			t.Fatal(err)
		}
		s.Weights, s.Intercept = append(s.Weights, weights), append(s.Intercept, intercept)
	}
	p, err := NewPredictor(s, "")
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func encoded(t rapid.TB, s Snapshot) []byte {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
