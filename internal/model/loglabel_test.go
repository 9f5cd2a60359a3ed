package model

import (
	"math"
	"strconv"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// TestErrorsOfLogLabels: predictions and errors of a label of scale log are in its units, also the best constant's; the
// score is the logarithm.
func TestErrorsOfLogLabels(t *testing.T) {
	spec := parsed(t, `{version: 1, name: prices, events: {format: csv, header: true},
  features: {columns: [{column: x, kind: numeric, min: 0, max: 1, scale: unit}]},
  label: {column: y, min: 0, max: 990, scale: log, unit: 10}, model: {loss: squared, radius: 5},
  privacy: {epsilon: 1, delta: 1e-6}, schedule: {users: 1000}}`)
	_, p := released(t, spec, 2, -1) // from 0 at x = 0 to 990 at x = 1, straight in ln(1 + y/10)
	var examples []convex.Example
	var square, absolute, logs float64
	rows := map[string]float64{"0": 20, "0.5": 90, "1": 500}
	for x, y := range rows {
		var e convex.Example
		if err := p.Features.Map(task.Row{Fields: []string{x}, Label: strconv.FormatFloat(y, 'g', -1, 64)}, &e); err != nil {
			t.Fatal(err)
		}
		at, _ := strconv.ParseFloat(x, 64)
		score := at * math.Log(100)
		value := 10 * (math.Exp(score) - 1)
		var got prediction
		if p.predict(e, 0, &got); math.Abs(got.Scores[0]-score) > 1e-9 || math.Abs(got.Value-value) > 1e-9 {
			t.Errorf("x = %s: score %v, prediction %v, want %v and %v", x, got.Scores[0], got.Value, score, value)
		}
		square, absolute, logs = square+(y-value)*(y-value), absolute+math.Abs(y-value), logs+math.Log(1+y/10)/3
		examples = append(examples, e)
	}
	out, err := p.EvaluateExamples(examples)
	if err != nil || math.Abs(out.RMSE-math.Sqrt(square/3)) > 1e-6 || math.Abs(out.MAE-absolute/3) > 1e-6 {
		t.Errorf("%+v, %v, want RMSE %v and MAE %v", out.OfNumbers, err, math.Sqrt(square/3), absolute/3)
	}
	constant, miss := 10*(math.Exp(logs)-1), 0.0
	for _, y := range rows {
		miss += (y - constant) * (y - constant)
	}
	if b := p.Baseline(examples, examples); math.Abs(*b.Value-constant) > 1e-6 ||
		math.Abs(*b.Error-math.Sqrt(miss/3)) > 1e-6 {
		t.Errorf("the best constant is %v with error %v, want %v and %v", *b.Value, *b.Error, constant, math.Sqrt(miss/3))
	}
}
