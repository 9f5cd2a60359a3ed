package curator

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPaperShares: small q leaves many people out; so does the strongly convex reduction.
func TestPaperShares(t *testing.T) {
	for _, c := range []struct {
		q      float64
		phases int
		want   float64
	}{{0.1, 14, 0.57948}, {1, 16, 0.499992}} {
		var sum float64
		for _, s := range shares(c.q, c.phases) {
			sum += s
		}
		if math.Abs(sum-c.want) > 5e-6 {
			t.Errorf("q = %v, %d phases: %v of the people, want %v", c.q, c.phases, sum, c.want)
		}
	}
	if got := shares(0.1, 17)[0] * 2e5; math.Abs(got-12496.4856) > 1e-3 {
		t.Errorf("first phase of 2e5: %v", got)
	}
	if paperPhases(200000) != 17 || paperPhases(1) != 0 || paperPhases(1024) != 10 {
		t.Error("phases of the paper")
	}
	if got := reductionSizes(100000); !slices.Equal(got, []int{3010, 6020, 12041, 24082, 48164}) {
		t.Errorf("reduction of 1e5 people: %v", got)
	}
}

// TestSplitIsAPartition: everybody is in one phase, and no phase is larger than the one before.
func TestSplitIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<20).Draw(t, "n")
		sizes := split(n, rapid.Float64Range(0, 3).Draw(t, "q"), rapid.IntRange(1, 12).Draw(t, "phases"))
		sum := 0
		for i, s := range sizes {
			if sum += s; s < 0 || i > 0 && s > sizes[i-1] {
				t.Fatal(sizes)
			}
		}
		if sum != n {
			t.Fatalf("%d of %d people", sum, n)
		}
		if fresh := reductionSizes(n); len(fresh) > 0 {
			sum = 0
			for _, s := range fresh {
				sum += s
			}
			if sum >= n {
				t.Fatalf("%d of %d people in the reduction", sum, n)
			}
		}
	})
}
