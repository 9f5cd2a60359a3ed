package private

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

// TestCostsArePrintedUpwards: what is printed is at least what is guaranteed, and less than a unit of the last digit above it.
func TestCostsArePrintedUpwards(t *testing.T) {
	for _, eps := range []float64{0.99923744, 0.9992371, 1, 0.49999999, 0.1, 4.99999951, 3} {
		c := newCost(eps, 1e-6)
		var e, d string
		if _, err := fmt.Sscanf(c.Replaced(), "epsilon %s delta %s", &e, &d); err != nil {
			t.Fatal(err)
		}
		for _, printed := range []struct {
			text   string
			exact  float64
			digits int
		}{{e[:len(e)-1], c.ReplaceEpsilon, 6}, {d, c.ReplaceDelta, 3}} {
			x, err := strconv.ParseFloat(printed.text, 64)
			if unit := math.Pow10(1 + int(math.Floor(math.Log10(printed.exact))) - printed.digits); err != nil || x < printed.exact || x-printed.exact > unit*(1+1e-9) {
				t.Errorf("%v is printed as %s: %v", printed.exact, printed.text, err)
			}
		}
	}
}
