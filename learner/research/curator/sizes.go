package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Size is the smallest number of people with which an algorithm can run: every group, batch and deletion of it
// exists. It does not consider accuracy.
type Size struct {
	Algorithm string // in words, with the paper's algorithm
	Method    string // of the table of methods; "": this variant is in none, and is named for comparison
	Paper     bool   // with the constants that the paper prints
	Least     int
}

// Sizes returns the fewest people that each algorithm needs, for people of m items in d dimensions. failure
// is the probability that a calibrated test halts on well-behaved data. GKKMMZ stands for Ghazi et al., On
// User-Level Private Convex Optimization, ICML 2023; LLA for Lowy, Liu, Asi, Faster Algorithms for User-Level
// Private Stochastic Convex Optimization, 2024.
func Sizes(b accounting.Budget, m, d int, failure float64) []Size {
	kappa, _ := paperDeletions(b)
	law, _ := calibratedLaw(b)
	half := accounting.Budget{Epsilon: b.Epsilon / 2, Delta: b.Delta / 2}
	ofHalf, _ := paperDeletions(half)
	groups := leastGroups(b, failure)
	all := leastPaperPhases(b, m)
	return []Size{
		{"GKKMMZ 1, 2: as many deletions as there may be", "deletion", true, leastOfKappa(kappa)},
		{"GKKMMZ 1, 2: no more than half of the people", "deletion", true, 8 * kappa},
		{"GKKMMZ 1, 2: law of deletions calibrated", "gradscore", false, leastDeletions(law)},
		{"GKKMMZ 4, one phase of half the people", "phased-sco", true, leastPhasedSCO(8 * kappa)},
		{"GKKMMZ 4: law of deletions calibrated", "phased-sco", false, leastPhasedSCO(leastDeletions(law))},
		{"GKKMMZ 3", "phased-erm", true, leastPhasedERM(b, m, true)},
		{"GKKMMZ 3: smallest law of deletions in each phase", "phased-erm", false, leastPhasedERM(b, m, false)},
		{"GKKMMZ 5", "strongly-convex-erm", true, leastPhasedERM(half, m, true)},
		{"GKKMMZ 6", "strongly-convex-sco", true, leastPhasedSCO(8 * ofHalf)},
		{"LLA 1, groups at the next line's people", "group-sgd", true, paperGroups(b, m, all)},
		{"LLA 1, all phases", "group-sgd", true, all},
		{"LLA 1, one phase", "group-sgd", true, least(func(n int) float64 { return float64(paperGroups(b, m, n)) })},
		{"LLA 1, one phase, calibrated", "group-sgd", false, groups},
		{"LLA 1, one phase, calibrated, with as little noise again", "group-sgd", false, 2 * groups},
		{"LLA 3, as its Theorem 3.1 demands", "filtered", true, leastPaperAccelerated(b, m, d)},
		{"LLA 3, no batch larger than its phase", "filtered", true, leastPaperBatches(b, m)},
		{"LLA 3, one phase of a full batch", "filtered", true, leastPaperBatch(b, m)},
		{"LLA 2, full batch of 20 steps, calibrated, a phase", "filtered", false, leastFiltered(b, 20, failure)},
		{"LLA Remark 3.6: runs of 3 on growing parts", "filtered", true, leastReduction(leastPaperAccelerated(b, m, d))},
		{"a person as one item", "output-phases", false, 1},
	}
}

// least returns the smallest n >= 1 that is at least need(n); need may not fall as n grows.
func least(need func(n int) float64) int {
	n := 1
	for {
		next := need(n)
		if !(next > float64(n)) {
			return n
		}
		if next > math.MaxInt32 {
			return math.MaxInt
		}
		n = int(math.Ceil(next))
	}
}

// leastPhasedSCO returns the fewest people of one phase, which has half of them.
func leastPhasedSCO(batch int) int { return 2 * batch }

// leastPhasedERM returns the fewest people for which each of ceil(log2(n m)) phases, on all people and an
// equal part of the budget, has its deletions: with the paper's constants at most half of the people;
// otherwise with the smallest law whose ends have no more mass than the phase's delta.
func leastPhasedERM(b accounting.Budget, m int, paper bool) int {
	return least(func(n int) float64 {
		t := math.Ceil(math.Log2(float64(n) * float64(m)))
		phase := accounting.Budget{Epsilon: b.Epsilon / max(t, 1), Delta: b.Delta / max(t, 1)}
		if paper {
			kappa, _ := paperDeletions(phase)
			return float64(8 * kappa)
		}
		return float64(leastDeletions(smallestLaw(phase.Epsilon/2, phase.Delta)))
	})
}

// paperGroups returns C of LLA, Algorithm 1.
func paperGroups(b accounting.Budget, m, n int) int {
	return int(math.Ceil(100 * (math.Log(20*float64(n)*float64(m)) + b.Epsilon - math.Log(b.Delta)) / b.Epsilon))
}

// exponents yields each q that is tried for a schedule of shrinking phases.
func exponents(yield func(q float64) bool) {
	for i := 2; i < 100; i++ {
		if !yield(float64(i) / 200) {
			return
		}
	}
}

// leastPhases returns the fewest people for which the last of floor(log2 n) phases, the i-th of (1-2^-q) n /
// 2^(iq) people, has as many as needed, with the best q.
func leastPhases(needed func(n int) float64) int {
	best := math.MaxInt
	for q := range exponents {
		best = min(best, least(func(n int) float64 {
			return needed(n) * math.Exp2(float64(paperPhases(n))*q) / (1 - math.Exp2(-q))
		}))
	}
	return best
}

// leastPaperPhases returns the fewest people for which every group of every phase of LLA, Algorithm 1, has a
// person.
func leastPaperPhases(b accounting.Budget, m int) int {
	return leastPhases(func(n int) float64 { return float64(paperGroups(b, m, n)) })
}

// leastPaperAccelerated returns the fewest people that meet the condition of LLA, Theorem 3.1, with the best
// q.
func leastPaperAccelerated(b accounting.Budget, m, d int) int {
	best := math.MaxInt
	for q := range exponents {
		best = min(best, least(func(n int) float64 {
			need := 100 * (math.Log(20*float64(n)*float64(m)*float64(d)) + b.Epsilon - math.Log(b.Delta)) / b.Epsilon
			return math.Pow(need/(1-math.Exp2(-q)), 1/(1-q))
		}))
	}
	return best
}

// leastPaperBatch returns the fewest people n for which the batch of LLA, Algorithm 3, by its first term
// alone, is no larger than a phase of n people.
func leastPaperBatch(b accounting.Budget, m int) int {
	return least(func(n int) float64 {
		return 500 * (2*math.Log(float64(n)*float64(m)) + b.Epsilon - math.Log(b.Delta)) / b.Epsilon
	})
}

// leastPaperBatches returns the fewest people for which every phase has as many as leastPaperBatch returns.
func leastPaperBatches(b accounting.Budget, m int) int {
	batch := float64(leastPaperBatch(b, m))
	return leastPhases(func(int) float64 { return batch })
}

// leastReduction returns the fewest people for which the first run of LLA, Remark 3.6, of floor(n / (2 log2
// n)) people, has as many as are needed.
func leastReduction(run int) int {
	return least(func(n int) float64 { return 2 * float64(run) * math.Log2(max(float64(n), 2)) })
}
