package planning

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTakeOff: users taken off growing cohorts are missing in the last ones alone, which still do not shrink.
func TestTakeOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.Uint64Range(1, 1000), 1, 20).Draw(t, "cohorts")
		slices.Sort(before)
		sum := total(before)
		n := rapid.Uint64Range(0, min(before[len(before)-1], sum-1)).Draw(t, "to take off")
		after := slices.Clone(before)
		takeOff(after, n)
		if got := total(after); got != sum-n || !slices.IsSorted(after) {
			t.Fatalf("%v less %d is %v", before, n, after)
		}
		changed := false
		for i := range before {
			if changed = changed || after[i] != before[i]; after[i] > before[i] || changed && after[len(after)-1]-after[i] > 1 {
				t.Fatalf("%v less %d is %v: cohort %d is not one of the equal last ones", before, n, after, i+1)
			}
		}
	})
}

func total(of []uint64) (n uint64) {
	for _, m := range of {
		n += m
	}
	return n
}
