package convex

import "math"

// expSlope returns the q > 0 with ln q + c q = u, for c >= 0: the slope of exp at u - c q. With w = c q it is omega(u
// + ln c).
func expSlope(u, c float64) float64 {
	if c == 0 {
		return math.Exp(u)
	}
	t := u + math.Log(c)
	w := omega(t)
	if t > 1 {
		return w / c
	}
	return math.Exp(u - w)
}

// sigmoid returns 1/(1 + exp(-z)); exp is only taken of what cannot overflow.
func sigmoid(z float64) float64 {
	if z >= 0 {
		return 1 / (1 + math.Exp(-z))
	}
	t := math.Exp(z)
	return t / (1 + t)
}

// sigmoidSlope returns the p of (0, 1) with p = sigmoid(-(m + c p)), for c >= 0, that is ln((1-p)/p) - c p - m = 0,
// which falls in p. It halves the numbers between 0 and 1 as often as there are digits, whatever m and c are.
func sigmoidSlope(m, c float64) float64 {
	if c == 0 {
		return sigmoid(-m)
	}
	lo, hi := 0x1p-1000, 1.0
	for range 62 {
		p := between(lo, hi)
		if math.Log((1-p)/p)-float64(c*p) > m {
			lo = p
		} else {
			hi = p
		}
	}
	return hi
}
