package model

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

const offsetTask = `
version: 1
name: offset
events: {format: csv, columns: [age, y]}
features: {columns: [{column: age, kind: numeric, min: 0, max: 100}]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
model: {loss: squared, radius: 5}
label: {column: y, min: -10, max: 10}
`

// addOffset makes labels of offsetTask less 1000, and 1100 above the age of 50.
func addOffset(t *testing.T, spec *task.Spec) {
	t.Helper()
	var err error
	if spec.Features.Public, err = task.NewPublic(&task.PublicModel{Version: 1, Sample: task.PublicSample{Rows: 9},
		Inputs: []string{"age"}, Offset: &task.PublicBlock{Outputs: 1, Bias: []float64{1000},
			Trees: []task.Tree{{Feature: []int{0}, Threshold: []float32{50}, Left: []int{-1}, Right: []int{-2},
				Leaf: []float32{0, 100}}}}}); err != nil {
		t.Fatal(err)
	}
	spec.Label.Offset = true
}

// TestEvaluationWithAnOffset: a model that adds nothing to the public prediction has its errors in the units of the
// data, the share of the variance of the labels that it explains, and a baseline beside the public prediction.
func TestEvaluationWithAnOffset(t *testing.T) {
	spec := parsed(t, offsetTask)
	addOffset(t, spec)
	_, p := released(t, spec, 0, 0)
	e, err := p.Evaluate(func(yield func(task.Row, error) bool) {
		for _, row := range [][2]string{{"20", "1004"}, {"80", "1104"}, {"50", "998"}, {"51", "1098"}} {
			if !yield(task.Row{Line: 1, Fields: row[:1], Label: row[1]}, nil) {
				return
			}
		}
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const total = 4 * (50*50 + 3*3) // squared distances of the labels from their mean, 1051
	if want := math.Sqrt(10); math.Abs(e.OfNumbers.RMSE-want) > 1e-9 || math.Abs(e.OfNumbers.R2-(1-40.0/total)) > 1e-9 {
		t.Errorf("RMSE %v, want %v; R2 %v, want %v", e.OfNumbers.RMSE, want, e.OfNumbers.R2, 1-40.0/total)
	}
	if b := e.Baseline; !b.Offset || math.Abs(*b.Value-1) > 1e-9 || math.Abs(*b.Error-3) > 1e-9 {
		t.Errorf("baseline %v, error %v, beside the public prediction: %v", *b.Value, *b.Error, b.Offset)
	}
	if text, want := e.Worse(), "the constant added to the public prediction has 3"; !strings.Contains(text, want) {
		t.Errorf("a model that is worse than it: %q, want %q in it", text, want)
	}
}

// TestPlansBeginAtThePublicPrediction: where labels are less an offset, a practical plan that ends treats the offset
// alone as its start, whatever the bounds of the labels are.
func TestPlansBeginAtThePublicPrediction(t *testing.T) {
	for _, bounds := range []string{"min: -10, max: 10", "min: -10, max: 50"} {
		spec := parsed(t, strings.ReplaceAll(offsetTask, "min: -10, max: 10", bounds))
		addOffset(t, spec)
		features, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		p := Predictor{Features: features, Loss: convex.Squared{}, Theta: spec.Practical(features).Start}
		var e convex.Example
		if err := features.Map(task.Row{Fields: []string{"80"}, Label: "1104"}, &e); err != nil {
			t.Fatal(err)
		}
		var got prediction
		p.predict(e, 0, &got)
		if math.Abs(got.Value-1100) > 1e-9 {
			t.Errorf("%s: the start predicts %v, the public model 1100", bounds, got.Value)
		}
	}
}
