package planning

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// PrivUnitError returns the mean squared error, per coordinate of a d-vector, of the best PrivUnitG at a pure epsilon, in units of
// the squared norm L^2 of the ball that the vectors lie in: what a user who trusts nobody has to add to one message.
//
// PrivUnitG (Asi, Feldman, Talwar, Optimal Algorithms for Mean Estimation under Local Differential Privacy, ICML 2022) sends a
// Gaussian vector U ~ N(0, I/D) in D dimensions, drawn with probability p from the cap <U, u> >= gamma around the unit vector u
// and else from its complement, divided by m = E<U, u>. With q = P[<U, u> < gamma] it is epsilon-private for
// p/(1-p) q/(1-q) <= e^epsilon, unbiased, and of error E||U||^2/m^2 - 1, within a factor 1 + o(1) of the least of all unbiased
// pure mechanisms. A vector of the ball is made a unit vector by one more coordinate, so D = d + 1.
func PrivUnitError(dim int, epsilon float64) (float64, error) {
	if dim < 1 || !(epsilon > 0) || math.IsInf(epsilon, 0) {
		return 0, fmt.Errorf("dim, epsilon: %d, %v, want a dimension of at least 1 and a finite epsilon above 0", dim, epsilon)
	}
	// z is gamma in standard deviations of <U, u>; the error has one valley in it.
	const least, most = 1e-6, 40
	z := smallest(least, most, func(z float64) float64 { return privUnitError(dim, epsilon, z) })
	return min(privUnitError(dim, epsilon, z), privUnitError(dim, epsilon, 0)), nil
}

func privUnitError(dim int, epsilon, z float64) float64 {
	normal := distuv.UnitNormal
	density, above := normal.Prob(z), normal.Survival(z)
	odds := math.Exp(epsilon) * above / (1 - above) // p/(1-p)
	p := odds / (1 + odds)
	if above == 0 || p == 0 {
		return math.Inf(1)
	}
	// Of a standard normal Z: E[Z; Z >= z] = density, E[Z^2; Z >= z] = z density + above.
	mean := density * (p/above - (1-p)/(1-above))
	square := p*(z*density+above)/above + (1-p)*(1-above-z*density)/(1-above)
	d := float64(dim + 1)
	// All of this is in units of 1/sqrt(D) of <U, u>; the other D-1 coordinates have 1/D each.
	return ((d-1+square)/(mean*mean) - 1) / float64(dim)
}
