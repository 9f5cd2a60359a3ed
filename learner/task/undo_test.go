package task

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

func near(a, b, size float64) bool { return math.Abs(a-b) <= 1e-9*(1+size) }

// TestUndoPredictsTheSame: for rows within the bounds, the released weights on raw values predict what the
// parameters predict on the mapped row.
func TestUndoPredictsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.NormBound = 0 // nothing is scaled down
		m := mustCompile(t, s)
		theta := rapid.SliceOfN(rapid.Float64Range(-10, 10), m.Dim(), m.Dim()).Draw(t, "theta")
		weights, intercept, err := m.Undo(theta)
		if err != nil {
			t.Fatal(err)
		}
		row := drawRow(t, s, true)
		var e convex.Example
		if err := m.Map(row, &e); err != nil {
			t.Fatal(err)
		}
		want := m.InLabel(e.Dot(theta))
		got, size := intercept, math.Abs(intercept)
		for j, x := range bases(t, m, row) {
			got += weights[j] * x
			size += math.Abs(weights[j]) * (1 + math.Abs(x))
		}
		if !near(got, want, size) {
			t.Fatalf("raw weights score %v, parameters %v", got, want)
		}
	})
}

func TestRedoInvertsUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mustCompile(t, drawSpec(t))
		theta := rapid.SliceOfN(rapid.Float64Range(-10, 10), m.Dim(), m.Dim()).Draw(t, "theta")
		weights, intercept, err := m.Undo(theta)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Redo(weights, intercept)
		if err != nil {
			t.Fatal(err)
		}
		for j := range theta {
			// Offsets of up to 200 go through the intercept and back.
			if math.Abs(again[j]-theta[j]) > 1e-8*(1+convex.Norm(theta)) {
				t.Fatalf("parameter %d: %v became %v", j, theta[j], again[j])
			}
		}
	})
}

func TestUndoByHand(t *testing.T) {
	// x in [0, 1] is 2x - 1, the target in [0, 10] is y/5 - 1: 3(2x - 1) + 0.5 = 6x - 2.5, times 5 plus 5.
	m := mustCompile(t, mustParse(t, regression))
	weights, intercept, err := m.Undo([]float64{3, 0.5})
	if err != nil || !near(weights[0], 30, 1) || !near(intercept, -7.5, 1) {
		t.Errorf("got %v, %v, %v, want 30 and -7.5", weights, intercept, err)
	}
	if y := decide(m, 0.5); !near(y, 7.5, 1) {
		t.Errorf("a score of 0.5 predicts %v, want 7.5", y)
	}
	if y := m.Target(-1); !near(y, 0, 1) {
		t.Errorf("a label of -1 is %v, want 0", y)
	}
	if _, _, err := m.Undo([]float64{1}); err == nil {
		t.Error("accepted parameters of the wrong length")
	}
	if _, _, err := m.Undo([]float64{math.NaN(), 0}); err == nil {
		t.Error("accepted a parameter that is not a number")
	}
	if _, err := m.Redo([]float64{1, 2}, 0); err == nil {
		t.Error("accepted weights of the wrong length")
	}
}
