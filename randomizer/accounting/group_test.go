package accounting

import (
	"math"
	"testing"
)

// TestGroupsOfRecords: Appendix D.3.5 of Lowy and Razaviyayn. At epsilon/n and delta/(4 n) for one record, n records
// replaced one after the other cost at most epsilon and the sum of delta/(4 n) e^(i epsilon/n), i < n, which is below delta
// for epsilon up to 1, and would not be for 3.
func TestGroupsOfRecords(t *testing.T) {
	sum := func(epsilon float64, n int) (share float64) {
		for i := range n {
			share += math.Exp(float64(i)*epsilon/float64(n)) / (4 * float64(n))
		}
		return share
	}
	for _, n := range []int{1, 2, 10, 5000} {
		if s := sum(1, n); s > math.E/4 || s >= 1 {
			t.Errorf("%d records at epsilon 1: %v of delta", n, s)
		}
	}
	if s := sum(3, 5000); s < 1 {
		t.Errorf("5000 records at epsilon 3: %v of delta", s)
	}
	// a report's own noise at 1/10 of the budget hides ten records: ten times the shift of one
	plan, err := Calibrate(Request{Users: 1, Units: 1000, Dim: 5, Epsilon: 0.1, Delta: 1e-6 / 40, Trust: Local,
		HonestFraction: One, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	all := Mechanism{Trials: plan.Trials, P: plan.P, Levels: plan.Levels, Dim: 5, Rounds: 3,
		Shift: 10 * float64(plan.Levels) / 1000}
	curve, err := Compose(all)
	if err != nil {
		t.Fatal(err)
	}
	if delta := curve.Delta(1); !(delta <= 1e-6) {
		t.Errorf("ten records: delta %v at epsilon 1", delta)
	}
}
