package resque

import (
	"math"
	"slices"
)

// median returns the middle of an odd number of values, which are sorted: within an error of the truth if
// more than half of the values are.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// copiesFor returns the smallest odd number of measurements, each good with that probability, above 1/2, of
// which half or more are not with probability at most zeta: the exact binomial tail.
func copiesFor(zeta, good float64) int {
	k := 1
	for fewer(k, k/2+1, good) > zeta {
		k += 2
	}
	return k
}

// fewer returns the probability that fewer than need of k independent events happen, of probability p in (0,
// 1) each.
func fewer(k, need int, p float64) float64 {
	var sum float64
	for i := range need {
		sum += math.Exp(logFactorial(k) - logFactorial(i) - logFactorial(k-i) + float64(i)*math.Log(p) +
			float64(k-i)*math.Log1p(-p))
	}
	return sum
}
