package randomizer

import (
	"fmt"
	"math"
)

// CoinBits is the number of random bits behind every biased coin and every stochastic rounding. It is part of the
// protocol: both sides of a round compute with probabilities on the grid 2^-24.
const CoinBits = 24

// Fair is the coin with success probability 1/2.
const Fair Coin = 1 << (CoinBits - 1)

// A Coin is a success probability on the grid of 24 bits: p = Coin/2^24, with 0 < Coin < 2^24.
type Coin uint32

// CoinFromFloat returns the coin of probability p. It refuses every p that is not exactly a multiple of 2^-24 strictly
// between 0 and 1, because rounding p would change the noise that a guarantee was computed for.
func CoinFromFloat(p float64) (Coin, error) {
	scaled := p * (1 << CoinBits)
	if !(p > 0 && p < 1) || scaled < 1 || scaled > 1<<CoinBits-1 {
		return 0, fmt.Errorf("coin: p = %v is outside [2^-%d, 1-2^-%d]", p, CoinBits, CoinBits)
	}
	if scaled != math.Trunc(scaled) {
		return 0, fmt.Errorf("coin: p = %v is not a multiple of 2^-%d; the nearest one is %v",
			p, CoinBits, Coin(math.Round(scaled)).Float())
	}
	return Coin(scaled), nil
}

// Float returns the probability, exactly.
func (c Coin) Float() float64 { return float64(c) / (1 << CoinBits) }

// Validate refuses probabilities 0 and 1 and anything above.
func (c Coin) Validate() error {
	if c == 0 || c >= 1<<CoinBits {
		return fmt.Errorf("coin: %d/2^%d is not a probability strictly between 0 and 1", uint32(c), CoinBits)
	}
	return nil
}

// SubGaussian returns the smallest s2 with E exp(t (X - p)) <= exp(t^2 s2/2) for all t, X being one flip: (1-2p)/(2 ln((1-p)/p)), and
// 1/4 for a fair coin (Kearns and Saul, Large Deviation Methods for Approximate Probabilistic Inference, UAI 1998, Lemma 1). It is at least
// p(1-p) and at most 1/4.
func (c Coin) SubGaussian() float64 {
	p := c.Float()
	if d := 1 - 2*p; math.Abs(d) > 1e-6 { // nearer to 1/2 the quotient loses digits, and is 1/4 to 12 of them
		return min(0.25, d/(2*math.Log((1-p)/p))*(1+1e-9))
	}
	return 0.25
}

// String returns the probability in decimal.
func (c Coin) String() string { return fmt.Sprint(c.Float()) }
