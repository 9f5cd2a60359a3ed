package curator

import "math"

// argmin returns a point of [low, high] where f is smallest, of those that it looked at: a grid in the logarithm,
// and a golden section around its best.
func argmin(low, high float64, f func(float64) float64) float64 {
	const grid, golden = 48, 0.6180339887498949
	at := func(t float64) float64 { return low * math.Pow(high/low, t) }
	best, least := 0.0, math.Inf(1)
	for i := range grid + 1 {
		if v := f(at(float64(i) / grid)); v < least {
			best, least = float64(i)/grid, v
		}
	}
	a, b := max(0, best-1./grid), min(1, best+1./grid)
	for range 40 {
		if x, y := b-golden*(b-a), a+golden*(b-a); f(at(x)) <= f(at(y)) {
			b = y
		} else {
			a = x
		}
	}
	if mid := (a + b) / 2; f(at(mid)) < least {
		best = mid
	}
	return at(best)
}
