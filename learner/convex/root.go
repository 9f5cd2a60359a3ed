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
// which falls in p. It halves the numbers between 0 and 1 as often as there are digits, whatever m and c are. Outside
// of the interval that rootOfSigmoid returns it knows the sign, and computes no logarithm. The first halvings, whose
// middles are all outside, it takes at once.
func sigmoidSlope(m, c float64) float64 {
	if c == 0 {
		return sigmoid(-m)
	}
	from, to := rootOfSigmoid(m, c)
	lo, hi := math.Float64bits(0x1p-1000), math.Float64bits(1)
	halvings := 62
	const even = 55 // the numbers between are 125 * 2^55: so many halvings leave no remainder
	if a, b := math.Float64bits(from), min(math.Float64bits(to), hi-1); a > lo {
		a, b = a-lo, b-lo
		n, width := even, (hi-lo)>>even
		for ; b/width*width >= a; n-- { // a middle of these halvings is a multiple of width
			width *= 2
		}
		lo += b / width * width
		hi, halvings = lo+width, halvings-n
	}
	for range halvings {
		mid := lo + (hi-lo)/2
		p := math.Float64frombits(mid)
		if p < from || p <= to && math.Log((1-p)/p)-float64(c*p) > m {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Float64frombits(hi)
}

// rootOfSigmoid returns a narrow interval around the root p of g(p) = ln((1-p)/p) - c p = m, such that g, as
// sigmoidSlope computes it, is above m for all smaller p, and not above m for all larger ones in (0, 1). Where it finds
// none it returns 0 and 1.
//
// Rounding changes g(p) by less than 2^-52 (1 + 1.5 |ln((1-p)/p)| + c p). At the ends of the interval g differs from m
// by more than eight times that; further out g itself moves at least as fast as ln((1-p)/p) and c p do.
func rootOfSigmoid(m, c float64) (from, to float64) {
	// In u = m + c p the equation is u - c sigmoid(-u) = m. Its left side rises, convex below 0 and concave above, so
	// that Newton's steps from the point of [m, m+c] next to 0 never pass the root.
	u := min(max(0, m), m+c)
	for range 40 {
		q := sigmoid(-u)
		step := (u - c*q - m) / (1 + c*q*(1-q))
		if u -= step; math.Abs(step) < 0x1p-26 { // what is left is at most half its square
			break
		}
	}
	p := sigmoid(-u)
	slack := 0x1p-49 * (1 + math.Abs(u) + c*p)
	d := 4*p*slack/(1/(1-p)+c*p) + 0x1p-50*p
	from, to = p-d, p+d
	g := func(p float64) float64 { return math.Log((1-p)/p) - float64(c*p) }
	if !(from > 0 && g(from) > m+slack && (to >= 1 || g(to) < m-slack)) {
		return 0, 1
	}
	return from, to
}
