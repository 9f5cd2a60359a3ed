package resque

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// Least absolute deviations, d = 20, kappa = 20.
func TestLeastAbsoluteDeviations(t *testing.T) {
	const d, gap = 20, .05
	rows := deviations(t, 500, d)
	best := least(t, rows, d, 1, gap/20)
	oracle, err := NewRows(convex.Absolute{}, rows, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Minimize(context.Background(), Problem{oracle, d, 1, 1}, Config{Gap: gap, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("origin %v, best %v, got %v; %d rounds, %d queries, at most %d; bound %v", deviation(rows, make([]float64, d)), best, deviation(rows, got.Model), got.Depth, got.Queries, got.Largest, got.Bound)
	if excess := deviation(rows, got.Model) - best; excess > gap {
		t.Errorf("gap %v", excess)
	}
}
