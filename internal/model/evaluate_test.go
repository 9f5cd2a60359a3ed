package model

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// TestEvaluateFigures against numbers that a person can check.
func TestEvaluateFigures(t *testing.T) {
	_, p := released(t, parsed(t, numbers), 0, 0, 0, 0) // predicts the middle: 500
	rows, err := source.New(strings.NewReader("30,a<b,100\n90,c&d,900\n50,a<b,500\n"), p.Features)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	e, err := p.Evaluate(rows.All(), nil)
	if err != nil {
		t.Fatal(err)
	}
	requireFigures(t, e, `{"examples":3,"invalid":0,"loss":0.2133,"error":326.5986,"mean_absolute_error":266.6667}`)
	none := func(yield func(task.Row, error) bool) { yield(task.Row{}, &task.RowError{Line: 1}) }
	if _, err := p.Evaluate(none, nil); err == nil || !strings.Contains(err.Error(), "1 rows do not") {
		t.Errorf("no example at all: %v", err)
	}
	broken := errors.New("the disk is gone")
	ends := func(yield func(task.Row, error) bool) { yield(task.Row{}, broken) }
	if _, err := p.Evaluate(ends, nil); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
}

// requireFigures compares an evaluation with JSON, to four digits after the point.
func requireFigures(t *testing.T, e Evaluation, want string) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var a, b map[string]float64
	if err := errors.Join(json.Unmarshal(data, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	if len(a) != len(b) {
		t.Errorf("%s, want %s", data, want)
	}
	for key, v := range b {
		if got, ok := a[key]; !ok || math.Abs(got-v) > 1e-4 {
			t.Errorf("%s is %v, want %v", key, got, v)
		}
	}
}

// TestEvaluateEveryLoss on three events at x = 0, where the score is the intercept alone.
func TestEvaluateEveryLoss(t *testing.T) {
	const file = `
version: 1
name: losses
events: {format: csv, columns: [x, y]}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1}]}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`
	for _, c := range []struct {
		model, label, events string
		theta                []float64
		want                 string
	}{
		{"loss: quantile, level: 0.75", "min: -10, max: 10, scale: raw", "0,1\n0,3\n0,9\n", []float64{5, 3},
			// misses -2, 0, 6: pinball (0.25 2 + 0 + 0.75 6)/3
			`{"examples":3,"invalid":0,"loss":1.6667,"error":3.6515,"mean_absolute_error":2.6667,"coverage":0.6667,"quantile_loss":1.6667}`},
		{"loss: softmax", "classes: [red, green, blue]", "0,red\n0,blue\n0,blue\n", []float64{0, 0, 0, 1, 0, 2},
			// ln(1 + e + e^2) = 2.4076, less the scores 0, 2 and 2
			`{"examples":3,"invalid":0,"loss":1.0743,"accuracy":0.6667}`},
		{"loss: hinge", "positive: [yes], negative: [no]", "0,yes\n0,no\n0,yes\n", []float64{0, 0.5},
			`{"examples":3,"invalid":0,"loss":0.8333,"accuracy":0.6667}`},
		{"loss: poisson, score_bound: 2", "max: 20", "0,2\n0,2\n0,8\n", []float64{0, math.Ln2},
			// misses 0, 0, 6; half the deviance of 8 from 2 is 8 ln 4 - 6
			`{"examples":3,"invalid":0,"loss":1.6968,"error":3.4641,"mean_absolute_error":2}`},
		{"loss: absolute", "min: 0, max: 10, scale: raw", "0,1\n0,3\n0,x\n", []float64{0, 2},
			`{"examples":2,"invalid":1,"loss":1,"error":1,"mean_absolute_error":1}`},
	} {
		spec := parsed(t, file+"model: {radius: 5, "+c.model+"}\nlabel: {column: y, "+c.label+"}\n")
		_, p := released(t, spec, c.theta...)
		rows, err := source.New(strings.NewReader(c.events), p.Features)
		if err != nil {
			t.Fatalf("%s: %v", c.model, err)
		}
		e, err := p.Evaluate(rows.All(), nil)
		rows.Close()
		if err != nil {
			t.Fatalf("%s: %v", c.model, err)
		}
		t.Run(spec.Model.Loss, func(t *testing.T) { requireFigures(t, e, c.want) })
	}
}
