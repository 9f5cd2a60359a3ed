package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBlocksOfScoresHideNothing: what is said of a block of scores, by which its pairs are left out, is no less than any of
// its pairs; and the profile is the largest of all pairs, for laws of any shape, whose halts decide too.
func TestBlocksOfScoresHideNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	halted := 0
	for range 2000 {
		n := 20 + r.IntN(30)
		at, below := make([]float64, n), make([]float64, n)
		sum := 0.0
		for s := range at { // now and then much of the mass is at one score
			below[s] = sum
			m := r.ExpFloat64() / float64(n)
			if r.IntN(8) == 0 {
				m *= 8
			}
			sum += m
		}
		for s := range at {
			below[s] /= sum
			at[s] = 1 - below[s]
		}
		eps, noise := r.Float64()*2, math.Exp(6*r.Float64())
		charge := math.Exp(eps)
		release := func(s, t int) Curve { return Curve{{mu: float64(s+t+2) / noise}} }
		worst := 0.0
		for first := 0; first < n; first += 8 {
			final, most := min(first+7, n-1), 0.0
			for s := first; s <= final; s++ {
				for u := max(s-1, 0); u <= min(s+1, n-1); u++ {
					most = max(most, pairDelta(eps, charge, at, below, s, u, 0, release))
				}
			}
			if got := blockDelta(eps, charge, at, below, first, final, release); got < most*(1-1e-12) {
				t.Fatalf("scores %d to %d: %v for the block, %v of a pair", first, final, got, most)
			}
			if final < n-2 {
				without := most
				for s := max(first, 1); s <= final; s++ {
					without = min(without, most-max(0, below[s]-charge*below[s-1]))
				}
				if without < most/2 {
					halted++
				}
			}
			worst = max(worst, most)
		}
		if got, _, _ := DeletionProfile(eps, at, below, release); math.Abs(got-min(1, worst)) > 1e-12*worst {
			t.Fatalf("profile %v, of all pairs %v", got, worst)
		}
	}
	if halted < 100 {
		t.Errorf("halts decided %d times alone", halted)
	}
}
