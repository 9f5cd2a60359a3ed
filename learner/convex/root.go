package convex

import "math"

// root returns the zero of an increasing function between lo and hi, from a start between them, to the last digits:
// Newton's method, which bisects wherever a step would leave what is known to hold the zero. f returns the function's
// value and derivative. If f gives NaN the result is the point where it did.
func root(lo, hi, start float64, f func(s float64) (value, derivative float64)) float64 {
	s := start
	for range 256 {
		v, d := f(s)
		switch {
		case v < 0:
			lo = s
		case v > 0:
			hi = s
		default:
			return s
		}
		next := s - v/d
		if !(next > lo && next < hi) {
			if next = lo + (hi-lo)/2; !(next > lo && next < hi) {
				return s
			}
		}
		if math.Abs(next-s) <= 0x1p-52*math.Abs(next) {
			return next
		}
		s = next
	}
	return s
}

// expSlope returns the q > 0 with ln q + c q = u, for c >= 0: the slope of exp at u - c q. With w = c q it is the Wright omega
// function: w + ln w = u + ln c.
func expSlope(u, c float64) float64 {
	if c == 0 {
		return math.Exp(u)
	}
	t := u + math.Log(c)
	if t > 1 {
		// ln w <= ln t, hence w lies between; the function is concave, so Newton's steps from the left never overshoot.
		low := t - math.Log(t)
		return root(low, t, low, func(w float64) (float64, float64) { return w + math.Log(w) - t, 1 + 1/w }) / c
	}
	top := math.Exp(t)
	w := root(0, top, top/(1+top), func(w float64) (float64, float64) {
		r := math.Exp(t - w)
		return w - r, 1 + r
	})
	return math.Exp(u - w)
}

// sigmoid is 1/(1 + exp(-z)); exp is only taken of what cannot overflow.
func sigmoid(z float64) float64 {
	if z >= 0 {
		return 1 / (1 + math.Exp(-z))
	}
	t := math.Exp(z)
	return t / (1 + t)
}

// sigmoidSlope returns the p of (0, 1) with p = sigmoid(-(m + c p)), for c >= 0.
func sigmoidSlope(m, c float64) float64 {
	if c == 0 {
		return sigmoid(-m)
	}
	// In r = m + c p: concave to the right of 0 and convex to its left, so steps that begin at 0, or at the end of the bracket
	// that is nearest to it, never overshoot.
	r := root(m, m+c, min(max(0, m), m+c), func(r float64) (float64, float64) {
		p := sigmoid(-r)
		return r - float64(c*p) - m, 1 + float64(float64(c*p)*(1-p))
	})
	return sigmoid(-r)
}
