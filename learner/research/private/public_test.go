package private

import (
	"math"
	"testing"
)

// TestAReplacedRecordCostsTwoSteps: where one law is within epsilon and delta of a second, and that of a third, the
// first can be as far from the third as is said of a record that is replaced, and no less is enough. The event has
// the probabilities delta + e^epsilon delta, delta and 0 by these laws.
func TestAReplacedRecordCostsTwoSteps(t *testing.T) {
	for _, eps := range []float64{0.1, 1, 4} {
		const delta = 1e-6
		laws := [3]float64{delta + math.Exp(eps)*delta, delta, 0}
		c := newCost(eps, delta)
		for i := range 2 {
			if off := laws[i] - math.Exp(c.Epsilon)*laws[i+1]; off > c.Delta*(1+1e-9) {
				t.Fatalf("laws %d and %d are no neighbours: %v", i, i+1, off)
			}
		}
		if off := laws[0] - math.Exp(c.ReplaceEpsilon)*laws[2]; !(off <= c.ReplaceDelta) ||
			!(c.ReplaceDelta <= off*(1+1e-9)) {
			t.Errorf("epsilon %v: delta %v is claimed of a record that is replaced, and the laws are %v apart", eps,
				c.ReplaceDelta, off)
		}
	}
}
