package randomizer

import (
	"fmt"
	"math"
	"math/bits"
)

// Decode estimates the sum of the users' vectors from totals, the sums of their counts. noiseTrials is the number of
// all binomial trials in a total: the users' own, the top-up and both floors. The estimate of coordinate j is
//
//	(2L/g) (total_j - p noiseTrials) - users L,
//
// unbiased for the sum of the clipped vectors up to the snapping of Encode, which moves a user's coordinate towards 0
// by less than 2^-23 L/g (ICLR 2022, Algorithm 2 and Theorem 3.2, with the range 2L and the recentring users L). It
// is computed in integers and rounded once at the end. The result reuses dst's memory if it is large enough.
//
// Of reports about K units it is the sum over reports of the mean of their units: 2L/g becomes what floor(g 2^23/K)
// steps for L give, and snapping moves a mean by less than 2^-22 K L/g. With a window the noise of each report is
// centred at w/2, whatever its trials.
//
// Decode refuses a wrong number of totals, totals without users, and totals that users reports and noiseTrials trials
// cannot have; the error gives the coordinate, not the total.
func (p Params) Decode(dst []float64, totals []uint64, users, noiseTrials uint64) ([]float64, error) {
	if len(totals) != p.Dim {
		return nil, fmt.Errorf("decode: %d totals for Dim = %d", len(totals), p.Dim)
	}
	if users == 0 {
		return nil, fmt.Errorf("decode: no users")
	}
	most, err := p.MaxTotal(users, noiseTrials)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	// centre = 2^24 (expected total of vectors 0) = users g 2^23 + coin noiseTrials, below 2^88. The noise of a window
	// equals the noise of users w fair trials.
	chi, clo := bits.Mul64(users*uint64(p.Levels), 1<<(CoinBits-1))
	if p.Window > 0 {
		noiseTrials = users * uint64(p.Window)
	}
	nhi, nlo := bits.Mul64(noiseTrials, uint64(p.Coin))
	clo, carry := bits.Add64(clo, nlo, 0)
	chi += nhi + carry
	unit := p.level() / (1 << CoinBits)
	dst = resize(dst, p.Dim)
	for j, t := range totals {
		if t > most {
			return nil, fmt.Errorf("decode: total of coordinate %d is above the %d that the reports can have", j, most)
		}
		thi, tlo := bits.Mul64(t, 1<<CoinBits)
		lo, borrow := bits.Sub64(tlo, clo, 0)
		hi, borrow := bits.Sub64(thi, chi, borrow)
		sign := 1.0
		if borrow != 0 {
			lo, borrow = bits.Sub64(0, lo, 0)
			hi, _ = bits.Sub64(0, hi, borrow)
			sign = -1
		}
		dst[j] = sign * math.FMA(float64(hi), 1<<64, float64(lo)) * unit
	}
	return dst, nil
}
