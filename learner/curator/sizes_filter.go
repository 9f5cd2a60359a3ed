package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// leastGroups is the smallest even number of groups, one person each, with which a test of their concentration and a release of their filtered mean
// can be within the budget, and halts on well-behaved data with the probability failure at most.
func leastGroups(b accounting.Budget, failure float64) int {
	return leastEven(func(c float64) float64 {
		return 2 * (c - 1) / c / (mostOfTest * b.Epsilon) * (math.Log(1/(2*b.Delta)) + math.Log(1/(2*failure)))
	})
}

// leastFiltered is the smallest even number of people, all of whom are in every one of so many steps, with which one threshold for all steps and a
// filtered mean gradient a step can be within the budget.
func leastFiltered(b accounting.Budget, steps int, failure float64) int {
	split := math.Cbrt(4) // of epsilon, between threshold and queries: least variance
	return leastEven(func(c float64) float64 {
		each := 2 * (c - 1) / c * (1 + split) / (mostOfTest * b.Epsilon)
		return differenceTail(2*each/split, each, b.Delta/10) + differenceTail(2*each/split, each, failure/float64(steps))
	})
}

// mostOfTest is the part of epsilon that a test may take at most; the rest is the release's.
const mostOfTest = 0.99

// leastEven is the smallest even c that leaves room: gaps(c) is how far the noise of the test reaches over the point that is to halt and under the one
// that is to pass, and a filter needs c - gaps(c) > c/2 + 2. Gaps hardly grow with c, so that there is room from some c on.
func leastEven(gaps func(c float64) float64) int {
	room := func(half int) bool { return float64(half)-gaps(2*float64(half)) > 2 }
	low, high := 2, 4 // at 2*2 there is none
	for !room(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := (low + high) / 2; room(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return 2 * high
}

// differenceTail is the g that Lap(v) - Lap(x), v > x, is at least with the probability p, rounded up.
func differenceTail(v, x, p float64) float64 {
	low, high := 0.0, v
	tail := func(g float64) float64 { return (v*v*math.Exp(-g/v) - x*x*math.Exp(-g/x)) / (2 * (v*v - x*x)) }
	for tail(high) > p {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; tail(middle) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
