package randomizer

import (
	"math/bits"
	"math/rand/v2"
)

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
