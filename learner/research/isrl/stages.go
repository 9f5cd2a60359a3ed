package isrl

import "math"

// A Stage is one run of the accelerated algorithm within the multi-stage one (Appendix E.1): rounds R_k, and v_k
// (accelerated.steepness).
type stage struct {
	rounds    int
	steepness float64
}

// stages returns the stages for a strongly convex objective that fit into this many rounds; each is meant to
// halve the gap.
//
//	R_k = ceil(max{4 sqrt(2 beta/mu), 128 V^2/(3 mu Delta 2^-(k+1))})
//	v_k = max{2 beta, (mu V^2/(3 Delta 2^-(k-1)) R_k (R_k+1)(R_k+2))^(1/2)}
//
// Where not even the first fits, it is run with all rounds. Doubt: the print reads as if the product of
// rounds divided; then it would never count. Each stage starts from the end of the one before, the first from
// w_0 (printed: 0).
func (f accelerated) stages(rounds int) (out []stage) {
	for k := 1; ; k++ {
		gap := f.Gap * math.Pow(2, -float64(k-1))
		r := math.Ceil(math.Max(4*math.Sqrt(2*f.condition()), 128*f.variance*4/(3*f.Convexity*gap)))
		switch {
		case r <= float64(rounds):
		case k == 1 && rounds > 0:
			r = float64(rounds)
		default:
			return out
		}
		v := math.Max(2*f.Smoothness, math.Sqrt(f.Convexity*f.variance/(3*gap)*r*(r+1)*(r+2)))
		out = append(out, stage{int(r), v})
		rounds -= int(r)
	}
}
