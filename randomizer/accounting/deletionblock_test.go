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

// TestHaltsAreCounted: where vectors tell nothing, a release is a coin, and its divergence by hand: p - e^eps p' of releasing
// and 1 - p - e^eps (1 - p') of halting, where these are above 0.
func TestHaltsAreCounted(t *testing.T) {
	at, below := []float64{1, 0.9, 0.3, 0.3}, []float64{0, 0.1, 0.7, 0.7}
	nothing := func(_, _ int) Curve { return Curve{{mu: 1e-9}} }
	for _, c := range []struct {
		eps  float64
		s, t int
		want float64
	}{{0.3, 2, 1, 0.7 - 0.134985881}, {0.3, 1, 2, 0.9 - 0.404957642}, {1.5, 2, 1, 0.7 - 0.448168907}, {2.5, 2, 1, 0},
		{0, 2, 1, 0.6}} {
		if got := pairDelta(c.eps, math.Exp(c.eps), at, below, c.s, c.t, 0, nothing); math.Abs(got-c.want) > 1e-8 {
			t.Errorf("epsilon %v, scores %d and %d: %v, want %v", c.eps, c.s, c.t, got, c.want)
		}
	}
	delta, s, u := DeletionProfile(0.3, at, below, nothing)
	if math.Abs(delta-0.565014119) > 1e-8 || s != 2 || u != 1 {
		t.Errorf("%v of scores %d and %d, want that of 2 and 1", delta, s, u)
	}
}
