package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// leastGroups returns the smallest even number of groups, one person each, with which a test of their
// concentration and a release of their filtered mean can be within the budget, and halts on well-behaved data
// with the probability failure at most.
func leastGroups(b accounting.Budget, failure float64) int {
	return leastEven(func(groups int) bool {
		_, err := bestGroups(groups, b, failure)
		return err == nil
	})
}

// leastFiltered returns the smallest even number of people, all of whom are in every one of so many steps,
// with which one threshold for all steps and a filtered mean gradient a step can be within the budget.
func leastFiltered(b accounting.Budget, steps int, failure float64) int {
	return leastEven(func(people int) bool {
		_, err := calibrateThreshold(people, steps, b, failure)
		return err == nil
	})
}

// leastEven returns the smallest even number from 6 on, of which a filter is, for which there is room. What a
// test needs hardly grows with the number of points, so that there is room from some number on; none in reach
// is as many as nobody has.
func leastEven(room func(points int) bool) int {
	low, high := 2, 4 // halves
	for !room(2 * high) {
		if high >= 1<<24 {
			return math.MaxInt32
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; room(2 * middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return 2 * high
}
