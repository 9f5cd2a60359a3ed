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
	w := t - math.Log(max(t, 1))
	if t <= 1 {
		top := math.Exp(t)
		w = top / (1 + top)
	}
	// Fritsch, Shafer and Crowley, Algorithm 443: what is left falls to its fourth power.
	for i := 0; i < 3 && w > 0; i++ {
		r := t - w - math.Log(w)
		a := 2 * (1 + w) * (1 + w + float64(2*r)/3)
		step := r / (1 + w) * ((a - r) / (a - 2*r))
		w += float64(w * step)
		if math.Abs(step) < 1e-5 {
			break
		}
	}
	if t > 1 {
		return w / c
	}
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
