package model

import (
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
	e, err := p.Evaluate(rows.All())
	if err != nil || e.Error == nil || math.Abs(*e.Error-400*math.Sqrt(2.0/3)) > 1e-9 {
		t.Errorf("%+v, %v: want a root mean squared error of 326.6", e, err)
	}
	none := func(yield func(task.Row, error) bool) { yield(task.Row{}, &task.RowError{Line: 1}) }
	if _, err := p.Evaluate(none); err == nil || !strings.Contains(err.Error(), "1 rows do not") {
		t.Errorf("no example at all: %v", err)
	}
	broken := errors.New("the disk is gone")
	ends := func(yield func(task.Row, error) bool) { yield(task.Row{}, broken) }
	if _, err := p.Evaluate(ends); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
}
