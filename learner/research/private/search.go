package private

import "math"

// minimize searches from x along the directions, one after the other, with steps of a factor of 4 down to 1.1
// of parameters that are logarithms. It returns the best of the points that it tried; +Inf is a point that is
// not allowed. Deterministic.
func minimize(x []float64, directions [][]float64, score func([]float64) float64) []float64 {
	best, value := x, score(x)
	for step := math.Log(4); step > 0.09; {
		moved := false
		for _, d := range directions {
			for _, sign := range []float64{1, -1} {
				for range 40 {
					next := make([]float64, len(best))
					for j := range best {
						next[j] = best[j] + sign*step*d[j]
					}
					v := score(next)
					if !(v < value) {
						break
					}
					best, value, moved = next, v, true
				}
			}
		}
		if !moved {
			step /= 2
		}
	}
	return best
}

// lastOf returns the largest i in [0, n) with ok(i), where ok holds up to some i and for none above it; 0 where it
// holds for none. It looks around the guess first.
func lastOf(n, guess int, ok func(i int) bool) int {
	lo, hi := 0, n
	for i, step := guess, 1; hi-lo > 1 && (lo == 0 || hi == n); step *= 4 {
		if i = min(max(i, lo+1), hi-1); ok(i) {
			lo, i = i, i+step
		} else {
			hi, i = i, i-step
		}
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; ok(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
