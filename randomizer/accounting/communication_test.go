package accounting

import (
	"math"
	"testing"
)

// TestCommunication: of Corollaries B.8 to B.11 of Cheu, Joseph, Mao and Peng, O(d (sqrt(m) + log(1/delta)/eps^2)) bits of
// a user in a round of m: the g bits of a coordinate that carry its value grow with the root of m, those of noise, b, do
// not, and the bytes that a report takes grow with the logarithm of both.
func TestCommunication(t *testing.T) {
	var bytes int
	for _, users := range []uint64{1e4, 1e5, 1e6} {
		plan, err := Calibrate(Request{Users: users, Dim: 100, Epsilon: 1, Delta: 1e-6, Trust: Shuffle,
			HonestFraction: One, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		if share := float64(plan.Levels) / math.Sqrt(float64(users)); share < 0.5 || share > 0.6 ||
			float64(plan.Trials) > 2*math.Log(1e6) {
			t.Errorf("%d users: %d bits of value, %.2f of the root, %d of noise", users, plan.Levels, share, plan.Trials)
		}
		if plan.BitsPerCoordinate != uint64(plan.Levels)+plan.Trials {
			t.Errorf("%d bits of %d and %d", plan.BitsPerCoordinate, plan.Levels, plan.Trials)
		}
		most := int(math.Ceil(100 * math.Ceil(math.Log2(float64(plan.BitsPerCoordinate+1))) / 8))
		if int(plan.ReportBytes) > most || int(plan.ReportBytes) < bytes {
			t.Errorf("%d users: %d bytes, want %d to %d", users, plan.ReportBytes, bytes, most)
		}
		bytes = int(plan.ReportBytes)
	}
}
