package randomizer

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
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

// validate refuses probabilities 0 and 1 and anything above.
func (c Coin) validate() error {
	if c == 0 || c >= 1<<CoinBits {
		return fmt.Errorf("coin: %d/2^%d is not a probability strictly between 0 and 1", uint32(c), CoinBits)
	}
	return nil
}

// SubGaussian returns the smallest s2 with E exp(t (X - p)) <= exp(t^2 s2/2) for all t, X being one flip: (1-2p)/(2
// ln((1-p)/p)), and 1/4 for a fair coin (Kearns and Saul, Large Deviation Methods for Approximate Probabilistic
// Inference, UAI 1998, Lemma 1). It is at least p(1-p) and at most 1/4.
func (c Coin) SubGaussian() float64 {
	p := c.Float()
	if d := 1 - 2*p; math.Abs(d) > 1e-6 { // nearer to 1/2 the quotient loses digits, and is 1/4 to 12 of them
		return min(0.25, d/(2*math.Log((1-p)/p))*(1+1e-9))
	}
	return 0.25
}

// String returns the probability in decimal.
func (c Coin) String() string { return fmt.Sprint(c.Float()) }

// flips returns the number of successes of n independent coins, at the price of a random word for every 64 fair coins
// and about eight words for every 64 biased ones.
func (c Coin) flips(src rand.Source, n uint64) uint64 {
	var ones int
	for ; n > 64; n -= 64 {
		ones += bits.OnesCount64(c.lanes(src, ^uint64(0)))
	}
	if n > 0 {
		ones += bits.OnesCount64(c.lanes(src, ^uint64(0)>>(64-n)))
	}
	return uint64(ones)
}

// lanes flips one coin in every lane (bit) that is set in open, and returns the lanes that succeeded.
//
// Lane i compares a uniform integer U_i of 24 bits with c, most significant bit first; bit i of the t-th word drawn is
// bit 23-t of U_i. A lane is decided at the first bit in which U_i and c differ: it succeeds if c has the 1 there,
// since then U_i < c. A lane that agrees with c down to the lowest bit set in c has U_i >= c and fails. Hence each lane
// succeeds with probability exactly c/2^24; bits of lanes already decided are drawn and ignored, which leaves the
// lanes independent. Drawing stops when all lanes are decided.
func (c Coin) lanes(src rand.Source, open uint64) uint64 {
	var won uint64
	// Shifted so that bit 31 is the next bit of c, and zero when no set bit is left.
	for rest := uint32(c) << (32 - CoinBits); rest != 0 && open != 0; rest <<= 1 {
		w := src.Uint64()
		if rest>>31 != 0 {
			won |= open &^ w
			open &= w
		} else {
			open &^= w
		}
	}
	return won
}
