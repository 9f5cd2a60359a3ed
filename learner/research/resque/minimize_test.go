package resque

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// Least absolute deviations, d = 20, kappa = 20: FixedLambda as it is proved, BallAccel with more slack than is;
// the same bytes with 1 and 8 workers.
func TestLeastAbsoluteDeviations(t *testing.T) {
	const d, gap = 20, .05
	rows := deviations(t, 300, d)
	best := smallest(t, rows, d, 1, gap/10)
	oracle, err := NewRows(convex.Absolute{}, rows, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, slack := range map[string]float64{FixedLambda: 1, BallAccel: 2000} {
		var want []float64
		for _, workers := range []int{1, 8} {
			got, err := Minimize(t.Context(), Problem{oracle, d, 1, 1}, Config{Algorithm: algorithm, Gap: gap, Workers: workers,
				Slack: slack})
			if err != nil {
				t.Fatal(err)
			}
			value := deviation(rows, got.Model)
			t.Logf("%s, slack %v: %.4f, best %.4f, origin %.4f; %d rounds, %d queries, at most %d at a time; bound %v",
				algorithm, slack, value, best,
				deviation(rows, make([]float64, d)), got.Depth, got.Queries, got.Largest, got.Bound)
			if value-best > gap-gap/10 { // best is within gap/10 of the smallest
				t.Errorf("%s: gap %v", algorithm, value-best)
			}
			if want != nil && !slices.Equal(got.Model, want) {
				t.Errorf("%s: %d workers have another model", algorithm, workers)
			}
			want = got.Model
		}
	}
}
