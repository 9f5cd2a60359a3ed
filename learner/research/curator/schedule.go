package curator

import (
	"math"
	"math/bits"
)

// shares returns each phase's share of the people (Lowy, Liu and Asi 2024, Algorithms 1 and 3): (1 -
// 2^-q)/2^(iq) in phase i = 1, ..., l.
func shares(q float64, phases int) []float64 {
	out := make([]float64, phases)
	for i := range out {
		out[i] = -math.Expm1(-q*math.Ln2) * math.Exp2(-q*float64(i+1))
	}
	return out
}

// paperPhases returns the l of the paper, floor(log2 n).
func paperPhases(n int) int { return bits.Len(uint(n)) - 1 }

// split divides n people into phases that shrink by 2^-q, in full: the rounding goes to the first. Phase i has the
// people from the sum of the sizes before it on, so that nobody is in two.
func split(n int, q float64, phases int) []int {
	var sum float64
	for i := range phases {
		sum += math.Exp2(-q * float64(i))
	}
	out, left := make([]int, phases), n
	for i := phases - 1; i > 0; i-- {
		out[i] = min(left, int(float64(n)*math.Exp2(-q*float64(i))/sum))
		left -= out[i]
	}
	out[0] = left
	return out
}

// reductionSizes returns the number of fresh people of each run of the strongly convex reduction:
// floor(2^(t-2) n/log2 n) for t = 1, ..., ceil(log2 log2 n) (Feldman, Koren and Talwar 2020, section 5.1).
// The sum is less than n.
func reductionSizes(n int) []int {
	log := math.Log2(float64(n))
	if !(log > 2) {
		return nil
	}
	out := make([]int, int(math.Ceil(math.Log2(log)-1e-12)))
	for t := range out {
		out[t] = int(math.Exp2(float64(t-1)) * float64(n) / log)
	}
	return out
}
