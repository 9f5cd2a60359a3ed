package isrl

import (
	"fmt"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// A law is the distribution of a privacy loss on a lattice: mass[i] at (low+i) step, less short; infinite at
// +Inf. The rest, up to 1, is at -Inf.
type law struct {
	step     float64
	low      int
	mass     []float64
	infinite float64
	short    float64
	lost     float64 // mass that may be in the wrong place, either way
}

// spill bounds the mass of a sum that lies outside the lattice that it is computed on.
const spill = 1e-15

// sum returns the law of the sum of that many independent losses, by one transform of a lattice that holds
// all but spill of it at either end.
func (l law) sum(times uint64) (law, error) {
	if times == 1 {
		return l, nil
	}
	t := float64(times)
	lowest, highest := -l.reach(t, -1), l.reach(t, 1)
	low, high := math.Floor(lowest/l.step)-1, math.Ceil(highest/l.step)+1
	if !(high-low < 1<<23) {
		return law{},
			fmt.Errorf("the privacy losses of %d rounds range from %.3g to %.3g in steps of %.3g: want at most 2^23", times,
				lowest, highest, l.step)
	}
	n := 1
	for n < int(high-low)+1 {
		n *= 2
	}
	around := make([]float64, n)
	for i, v := range l.mass {
		around[mod(l.low+i, n)] += v
	}
	fft := fourier.NewFFT(n)
	c := fft.Coefficients(nil, around)
	each := roundoff * math.Log2(float64(n)) // of a transform, beside its vector, in the mean square
	first := each*norm(around) + roundoff
	var wrong float64 // of the sum's coefficients, squared
	for i, v := range c {
		z := math.Exp((t - 1) * math.Log(cmplx.Abs(v)))
		wrong += 2 * (t * z * first) * (t * z * first)
		c[i] = power(v, times)
	}
	around = fft.Sequence(around, c)
	out := law{step: l.step, low: int(low), mass: make([]float64, n), infinite: t * l.infinite, short: t * l.short}
	for i := range out.mass {
		out.mass[i] = around[mod(out.low+i, n)] / float64(n)
	}
	// By Parseval and Cauchy: no weights of at most 1 make more of the masses' errors than this.
	out.lost = 2*spill + t*l.lost + math.Sqrt(wrong) + math.Sqrt(float64(n))*each*norm(out.mass)
	return out, nil
}

// roundoff is a few units of the last place.
const roundoff = 5e-16

func norm(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

func mod(i, n int) int { return ((i % n) + n) % n }

// power returns z^t, by squaring.
func power(z complex128, t uint64) complex128 {
	out := complex(1, 0)
	for ; t > 0; t >>= 1 {
		if t&1 == 1 {
			out *= z
		}
		z *= z
	}
	return out
}

// reach returns an x such that the sum of t losses exceeds it, in the given direction, with probability at
// most spill (Chernoff).
func (l law) reach(t, sign float64) float64 {
	best := math.Inf(1)
	most := math.Max(math.Abs(float64(l.low)), math.Abs(float64(l.low+len(l.mass)-1))) * l.step
	const largest = 600 // the exponent that e^x bears, with room for sums
	for at := math.Min(1e-3/l.step/math.Sqrt(t), largest/most); at*most <= largest; at *= 1.3 {
		var sum float64
		for i, v := range l.mass {
			sum += v * math.Exp(sign*at*float64(l.low+i)*l.step)
		}
		best = math.Min(best, (t*math.Log(sum)-math.Log(spill))/at)
	}
	return math.Min(best, t*most)
}

// delta returns the mean of (1 - e^(eps - loss))+, everything that is in doubt counted as a loss without end.
func (l law) delta(eps float64) float64 { return math.Min(1, l.mean(eps)+l.infinite+l.lost) }

// least returns the same mean as delta, with everything that is in doubt left out.
func (l law) least(eps float64) float64 { return math.Max(0, l.mean(eps+l.short)-l.lost) }

func (l law) mean(eps float64) float64 {
	var sum float64
	for i := max(0, int(math.Floor(eps/l.step))-l.low); i < len(l.mass); i++ {
		if x := float64(l.low+i)*l.step - eps; x > 0 {
			sum += l.mass[i] * -math.Expm1(-x)
		}
	}
	return sum
}
