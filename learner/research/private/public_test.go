package private

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

// TestCostsArePrintedUpwards: what is printed is at least what is guaranteed, and less than a unit of the last
// digit above it.
func TestCostsArePrintedUpwards(t *testing.T) {
	for _, eps := range []float64{0.99923744, 0.9992371, 1, 0.49999999, 0.1, 4.99999951, 3} {
		c := newCost(eps, 1e-6)
		var e, d string
		if _, err := fmt.Sscanf(c.replaced(), "epsilon %s delta %s", &e, &d); err != nil {
			t.Fatal(err)
		}
		for _, printed := range []struct {
			text   string
			exact  float64
			digits int
		}{{e[:len(e)-1], c.ReplaceEpsilon, 6}, {d, c.ReplaceDelta, 3}} {
			x, err := strconv.ParseFloat(printed.text, 64)
			if unit := math.Pow10(1 + int(math.Floor(math.Log10(printed.exact))) - printed.digits); err != nil ||
				x < printed.exact || x-printed.exact > unit*(1+1e-9) {
				t.Errorf("%v is printed as %s: %v", printed.exact, printed.text, err)
			}
		}
	}
}

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
