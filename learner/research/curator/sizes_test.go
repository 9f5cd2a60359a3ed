package curator

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

var epsilons = [3]float64{1, 4, 8}

func budget(epsilon float64) accounting.Budget {
	return accounting.Budget{Epsilon: epsilon, Delta: 1e-6}
}

// The smallest number of people of every algorithm, at delta 1e-6, for people of 16 items in 10 dimensions. Entries
// of two or three digits are within 2 %.
func TestSizes(t *testing.T) {
	want := []struct {
		least  [3]float64
		digits bool
	}{
		{[3]float64{130, 42, 26}, false},
		{[3]float64{256, 80, 48}, false},
		{[3]float64{102, 30, 18}, false},
		{[3]float64{512, 160, 96}, false},
		{[3]float64{204, 60, 36}, false},
		{[3]float64{4840, 1000, 472}, false},
		{[3]float64{1494, 362, 178}, false},
		{[3]float64{10672, 2368, 1112}, false},
		{[3]float64{1024, 288, 160}, false},
		{[3]float64{3254, 852, 468}, false},
		{[3]float64{1.55e5, 3.6e4, 1.85e4}, true},
		{[3]float64{2855, 756, 421}, false},
		{[3]float64{82, 24, 14}, false},
		{[3]float64{164, 48, 28}, false},
		{[3]float64{1.7e5, 3.9e4, 2.0e4}, true},
		{[3]float64{1.12e6, 2.4e5, 1.2e5}, true},
		{[3]float64{20089, 5052, 2698}, false},
		{[3]float64{354, 92, 48}, false},
		{[3]float64{7.8e6, 1.6e6, 7.9e5}, true},
		{[3]float64{1, 1, 1}, false},
	}
	for i, epsilon := range epsilons {
		got := Sizes(budget(epsilon), 16, 10, 1e-3)
		if len(got) != len(want) {
			t.Fatalf("%d sizes, want %d", len(got), len(want))
		}
		for k, size := range got {
			to := 0.0
			if want[k].digits {
				to = 0.02 * want[k].least[i]
			}
			if off := math.Abs(float64(size.Least) - want[k].least[i]); off > to {
				t.Errorf("epsilon %v, %s: %d, want %v", epsilon, size.Algorithm, size.Least, want[k].least[i])
			}
		}
	}
}

// Phases of the smallest size for phased ERM, and its deletions in each.
func TestPhasesOfTheSmallestSize(t *testing.T) {
	for i, want := range [3]struct {
		phases float64
		kappa  int
	}{{17, 605}, {14, 125}, {13, 59}} {
		n := leastPhasedERM(budget(epsilons[i]), 16, true)
		phases := math.Ceil(math.Log2(16 * float64(n)))
		kappa, _ := paperDeletions(accounting.Budget{Epsilon: epsilons[i] / phases, Delta: 1e-6 / phases})
		if phases != want.phases || kappa != want.kappa {
			t.Errorf("epsilon %v: %v phases of kappa %d, want %+v", epsilons[i], phases, kappa, want)
		}
	}
}

// A full batch of 1, 20 and 100 steps.
func TestLeastFiltered(t *testing.T) {
	for i, want := range [3][3]int{{314, 354, 376}, {82, 92, 96}, {42, 48, 50}} {
		for k, steps := range [3]int{1, 20, 100} {
			if got := leastFiltered(budget(epsilons[i]), steps, 1e-3); got != want[k] {
				t.Errorf("epsilon %v, %d steps: %d, want %d", epsilons[i], steps, got, want[k])
			}
		}
	}
}

// The paper's constants at 100,000 people of 16 items.
func TestPaperGroups(t *testing.T) {
	for i, want := range [3]int{3210, 878, 489} {
		if got := paperGroups(budget(epsilons[i]), 16, 100_000); got != want {
			t.Errorf("epsilon %v: %d groups, want %d", epsilons[i], got, want)
		}
	}
}

// Where a size is one at which the next smaller one fails.
func TestLeastIsLeast(t *testing.T) {
	b := budget(1)
	n := least(func(n int) float64 { return float64(paperGroups(b, 16, n)) })
	if paperGroups(b, 16, n) > n || paperGroups(b, 16, n-1) <= n-1 {
		t.Errorf("%d people, groups %d", n, paperGroups(b, 16, n))
	}
	if got := least(func(int) float64 { return math.Inf(1) }); got != math.MaxInt {
		t.Errorf("never: %d", got)
	}
	var before []Size
	for _, epsilon := range []float64{0.3, 1, 2, 8} { // more budget needs no more people
		now := Sizes(budget(epsilon), 16, 10, 1e-3)
		for _, k := range []int{1, 5, 12} {
			if before != nil && now[k].Least > before[k].Least {
				t.Errorf("line %d, epsilon %v: %d after %d", k, epsilon, now[k].Least, before[k].Least)
			}
		}
		before = now
	}
}
