package stream

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A share that waits grows back to 1, for every announcement and deadline, in half of the deadline or 8 minutes; the devices
// that may join at a time are those that the stage counts with.
func TestJoinShareTendsToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probability, draw := rapid.Uint32().Draw(t, "probability"), rapid.Uint32().Draw(t, "draw")
		deadline := time.Duration(rapid.Int64Range(-1, int64(1000*time.Hour)).Draw(t, "deadline"))
		most := 8 * time.Minute
		if half := deadline / 2; deadline > 8*time.Second && half < most {
			most = half
		} else if deadline > 0 && deadline <= 8*time.Second {
			most = 4 * time.Second
		}
		after := JoinAfter(probability, draw, deadline)
		if after < 0 || after > most {
			t.Fatalf("probability %d, draw %d, deadline %v: joins after %v", probability, draw, deadline, after)
		}
		if got := JoinShare(probability, most, deadline); got != 1 {
			t.Fatalf("share %v after %v", got, most)
		}
		// The share at the moment of joining is the draw itself: no more, no fewer.
		u := (float64(draw) + 1) / (1 << 32)
		got := JoinShare(probability, after, deadline)
		if after == 0 && u > got+1e-6 || after > 0 && math.Abs(got-u) > 1e-6 { // a Duration has nanoseconds
			t.Fatalf("share %v when the device with %v joins after %v", got, u, after)
		}
	})
	for _, p := range []uint32{0, 1, 1 << 16, 1 << 31, math.MaxUint32} {
		if JoinAfter(p, 0, time.Hour) != 0 {
			t.Errorf("probability %d: the smallest draw waits", p)
		}
		if got := JoinProbability(share(p)); got != p && !(p == 1 && got == 1<<16) {
			t.Errorf("probability %d becomes %d", p, got)
		}
	}
	for _, of := range []float64{1, 2, math.Inf(1), math.NaN()} {
		if got := JoinProbability(of); got != 0 {
			t.Errorf("share %v becomes %d, want everybody", of, got)
		}
	}
	if got := JoinProbability(0); got == 0 {
		t.Error("nobody becomes everybody")
	}
}
