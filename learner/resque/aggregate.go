package resque

import (
	"math"
	"slices"
)

// median is the middle of an odd number of values, which are sorted: within an error of the truth if more than half of the values are.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// copies is the smallest odd number of measurements, each wrong with probability 0.1, of which half or more are wrong with probability at most zeta.
func copies(zeta float64) int {
	k := 1
	for fewer(k, k/2+1, 0.9) > zeta {
		k += 2
	}
	return k
}

// fewer is the probability that fewer than need of k independent events happen, of probability p in (0, 1) each.
func fewer(k, need int, p float64) float64 {
	var sum float64
	for i := range need {
		sum += math.Exp(logFactorial(k) - logFactorial(i) - logFactorial(k-i) + float64(i)*math.Log(p) + float64(k-i)*math.Log1p(-p))
	}
	return sum
}

// Aggregate returns the index of one of k points that is within Delta of an unknown point, where at least 0.51 k of them are within Delta/3 of it (Lemma 11): the
// one whose ceil(0.51 k)-th nearest point, itself counted, is nearest. It does not have to know Delta: a point within Delta/3 has as many within 2 Delta/3, so
// the best has too, and one of those is within Delta/3. It takes k^2 distances.
func Aggregate(points [][]float64) int {
	quorum := int(math.Ceil(0.51 * float64(len(points))))
	best, nearest := 0, math.Inf(1)
	squares, way := make([]float64, len(points)), make([]float64, len(points[0]))
	for i, x := range points {
		for j, y := range points {
			for c := range way {
				way[c] = x[c] - y[c]
			}
			squares[j] = dot(way, way)
		}
		slices.Sort(squares)
		if squares[quorum-1] < nearest {
			best, nearest = i, squares[quorum-1]
		}
	}
	return best
}
