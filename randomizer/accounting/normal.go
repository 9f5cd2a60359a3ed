package accounting

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// density is the standard normal density.
func density(z float64) float64 {
	return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
}

// upperTail is Q(z) = Pr[N(0,1) >= z], accurate in the upper tail.
func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// logUpperTail is ln Q(z). Above 25 the tail is the density times Mills' ratio by
// its continued fraction, which has converged there after a few terms.
func logUpperTail(z float64) float64 {
	if z <= 25 {
		return math.Log(upperTail(z))
	}
	f := z
	for k := 24.0; k >= 1; k-- {
		f = z + k/f
	}
	return -z*z/2 - math.Log(f) - math.Log(2*math.Pi)/2
}

// tailQuantile is the z >= 0 with Q(z) = s, for 0 < s <= 1/2: algorithm AS 241
// (gonum) and one Halley step, so that the error is that of erfc.
func tailQuantile(s float64) float64 {
	z := -mathext.NormalQuantile(s)
	u := (upperTail(z) - s) / density(z)
	return z + u/(1-z*u/2)
}
