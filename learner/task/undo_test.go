package task

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

// rawScore applies released weights to a row in the units of the data, knowing the coordinates only.
func rawScore(t rapid.TB, m *FeatureMap, row Row, weights []float64, intercept float64) float64 {
	t.Helper()
	score := intercept
	if m.vector != nil {
		for k, i := range row.Index {
			score += weights[i] * row.Value[k]
		}
		return score
	}
	columns := m.Schema().Columns
	for j, c := range m.Coordinates() {
		field := row.Fields[slices.Index(columns, c.Column)]
		switch {
		case c.Kind == "numeric":
			x, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			score += weights[j] * x
		case c.Kind == "categorical" && c.Word == field:
			score += weights[j]
		case c.Name == c.Column+"=*" && field == "elsewhere":
			score += weights[j]
		case c.Kind == "hashed" && c.Name == c.Column+"#"+strconv.Itoa(m.columns[slices.Index(columns, c.Column)].bucket(field)):
			score += weights[j]
		}
	}
	return score
}

func near(a, b, size float64) bool { return math.Abs(a-b) <= 1e-9*(1+size) }

// For rows within the bounds, the released weights on raw values predict what the parameters predict on the mapped row.
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
		for i, f := range row.Fields { // the map trims, and so must the oracle
			row.Fields[i] = strings.TrimSpace(f)
		}
		var e convex.Example
		if err := m.Map(row, &e); err != nil {
			t.Fatal(err)
		}
		want := e.Dot(theta)
		if m.label.kind == number {
			want = m.Decide(want)
		}
		size := convex.Norm(weights) * 200
		if got := rawScore(t, m, row, weights, intercept); !near(got, want, math.Abs(intercept)+size) {
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
	if y := m.Decide(0.5); !near(y, 7.5, 1) {
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
