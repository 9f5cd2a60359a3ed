package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// tensors returns rows as the inputs of the task's ONNX model.
func tensors(t fataler, s *task.Spec, rows []task.Row) map[string]tensor {
	t.Helper()
	in := map[string]tensor{}
	if v := s.Features.Vector; v != nil {
		x := tensor{Type: "float64", Dims: []int{len(rows), v.Dimension}}
		for _, row := range rows {
			for _, f := range row.Value {
				x.Data = append(x.Data, jsNumber(f))
			}
		}
		in["vector"] = x
	}
	words := map[string]bool{}
	for _, c := range s.Features.Columns {
		words[c.Name] = c.Kind == task.Categorical || c.Kind == task.Hashed
	}
	for i, name := range s.Schema().Columns {
		x := tensor{Type: "float64", Dims: []int{len(rows), 1}}
		if words[name] {
			x.Type = "string"
		}
		for _, row := range rows {
			if words[name] {
				x.Data = append(x.Data, row.Fields[i])
				continue
			}
			f, err := strconv.ParseFloat(row.Fields[i], 64)
			if err != nil {
				t.Fatalf("%v", err)
			}
			x.Data = append(x.Data, jsNumber(f))
		}
		in[name] = x
	}
	return in
}

// jsNumber returns a number in JSON, or its text in JavaScript.
func jsNumber(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strings.Replace(strconv.FormatFloat(f, 'g', -1, 64), "Inf", "Infinity", 1)
	}
	return f
}

// output finds an output, which has another name where a column has its.
func output(s *task.Spec, out map[string]tensor, name string) tensor {
	if slices.Contains(s.Schema().Columns, name) {
		return out["output_"+name]
	}
	return out[name]
}

// A scenario is a task with its parameters, and events.
type scenario struct {
	spec  *task.Spec
	theta []float64
	rows  []task.Row
}

var scenarios = rapid.Custom(func(t *rapid.T) scenario {
	var s scenario
	s.spec, s.theta = drawTask(t)
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		s.rows = append(s.rows, drawRow(t, s.spec))
	}
	return s
})

// TestONNXScoresTheSame: a real runtime scores raw events of any task as the predictor does, invalid ones as NaN.
func TestONNXScoresTheSame(t *testing.T) {
	r := startRuntime(t)
	check := func(t rapid.TB, s scenario) {
		snapshot, p := released(t, s.spec, s.theta...)
		model, err := snapshot.ONNX()
		if err != nil {
			t.Fatal(err)
		}
		out := r.run(t, model, tensors(t, s.spec, s.rows))
		for i, row := range s.rows {
			requireSame(t, s.spec, p, row, out, i)
		}
	}
	if longtest.Run(t, "all drawn tasks but the first") {
		rapid.Check(t, func(t *rapid.T) { check(t, scenarios.Draw(t, "scenario")) })
		return
	}
	seen := map[string]bool{}
	for seed := 0; seed < 40 || len(seen) < len(losses); seed++ {
		s := scenarios.Example(seed)
		seen[s.spec.Model.Loss] = true
		check(t, s)
	}
}

// requireSame compares the i-th answers of the runtime with the predictor's.
func requireSame(t fataler, s *task.Spec, p Predictor, row task.Row, out map[string]tensor, i int) {
	t.Helper()
	e, valid := mapped(t, p, row)
	var want prediction
	p.predict(e, 0, &want)
	scores := output(s, out, "score")
	width := len(want.Scores)
	tolerance := 1e-9 * (1 + convex.Norm(p.Theta)*p.Features.Bound())
	if !p.Features.Classification() && s.Model.Loss != "poisson" {
		// units of the label
		tolerance *= math.Abs(p.Features.InLabel(1)-p.Features.InLabel(0)) + math.Abs(p.Features.InLabel(0))
	}
	near := func(name string, at int, b, tolerance float64) {
		a := output(s, out, name).number(t, at)
		if valid && !(math.Abs(a-b) <= tolerance) || !valid && !math.IsNaN(a) {
			t.Fatalf("%s of row %d: the runtime says %v, the predictor %v, valid %v", name, i, a, b, valid)
		}
	}
	if len(scores.Dims) != 2 || scores.Dims[1] != width {
		t.Fatalf("scores of shape %v, want width %d", scores.Dims, width)
	}
	margin := math.Inf(1)
	for k, z := range want.Scores {
		near("score", i*width+k, z, tolerance)
		if width == 1 {
			margin = math.Abs(z)
		} else if want.Class != p.Features.Classes()[k] {
			margin = min(margin, slices.Max(want.Scores)-z)
		}
	}
	for k, q := range want.Probabilities {
		near("probability", i*width+k, q, tolerance)
	}
	if want.Class == "" {
		near("prediction", i, want.Value, tolerance*max(1, math.Abs(want.Value)+s.Label.Unit))
		return
	}
	if !valid {
		want.Class, margin = "", math.Inf(1)
	}
	if got := output(s, out, "label").Data[i]; got != want.Class && margin > tolerance {
		t.Fatalf("row %d: the runtime says class %v, the predictor %q", i, got, want.Class)
	}
}
