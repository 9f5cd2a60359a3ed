package accounting

import "math/big"

// Reference arithmetic: 640 bits leave more than 100 digits after the
// cancellation of the series at z = 15.
const refPrec = 640

func bigF(x float64) *big.Float { return new(big.Float).SetPrec(refPrec).SetFloat64(x) }
func bigNew() *big.Float        { return new(big.Float).SetPrec(refPrec) }

// bigExp returns e^x by its series after halving the argument.
func bigExp(x *big.Float) *big.Float {
	const halvings = 16
	y := bigNew().SetMantExp(x, -halvings)
	sum, term := bigF(1), bigF(1)
	for k := 1; k < 200; k++ {
		term.Quo(term.Mul(term, y), bigF(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigPi computes pi by Machin's formula.
func bigPi() *big.Float {
	arctanInverse := func(n float64) *big.Float {
		square := bigF(n * n)
		power := bigNew().Quo(bigF(1), bigF(n))
		sum := bigNew().Set(power)
		for k := 1; k < 500; k++ {
			power.Quo(power, square)
			term := bigNew().Quo(power, bigF(float64(2*k+1)))
			if k%2 == 1 {
				sum.Sub(sum, term)
			} else {
				sum.Add(sum, term)
			}
		}
		return sum
	}
	pi := bigNew().Mul(bigF(16), arctanInverse(5))
	return pi.Sub(pi, bigNew().Mul(bigF(4), arctanInverse(239)))
}

// bigUpperTail returns Q(z) = 1/2 - phi(z) sum z^(2k+1)/(2k+1)!!.
func bigUpperTail(z *big.Float) *big.Float {
	square := bigNew().Mul(z, z)
	term := bigNew().Set(z)
	sum := bigNew().Set(z)
	for k := 1; k < 2500; k++ {
		term.Quo(term.Mul(term, square), bigF(float64(2*k+1)))
		sum.Add(sum, term)
	}
	half := bigNew().Quo(square, bigF(-2))
	phi := bigNew().Quo(bigExp(half), bigNew().Sqrt(bigNew().Mul(bigF(2), bigPi())))
	return bigNew().Sub(bigF(0.5), sum.Mul(sum, phi))
}

// bigGaussianDelta computes deltaG by its defining difference.
func bigGaussianDelta(eps, mu float64) *big.Float {
	t := bigNew().Quo(bigF(eps), bigF(mu))
	half := bigF(mu / 2)
	a, c := bigNew().Sub(t, half), bigNew().Add(t, half)
	return bigNew().Sub(bigUpperTail(a), bigNew().Mul(bigExp(bigF(eps)), bigUpperTail(c)))
}

// relative returns |got/want - 1|.
func relative(got float64, want *big.Float) float64 {
	d := bigNew().Quo(bigF(got), want)
	v, _ := d.Sub(d, bigF(1)).Float64()
	if v < 0 {
		return -v
	}
	return v
}
