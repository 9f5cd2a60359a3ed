package randomizer

import (
	"fmt"
	"math/rand/v2"
)

// MaxBinomialTrials is the largest number of trials of one Binomial.
const MaxBinomialTrials = 1 << 44

// Above these numbers of trials a table is cheaper than flipping coins.
const (
	maxFairFlips   = 256
	maxBiasedFlips = 8
)

// A Binomial draws from Bin(trials, p) exactly: every outcome has the binomial probability to the last bit, provided
// that the source's bits are uniform and independent. Few trials are flipped coin by coin; many are inverted from
// a table with certified error bounds, which draws more random bits whenever the bounds leave the outcome open
// (the proof is at the type inversion). More than 2^31 trials are a sum of independent draws.
//
// A Binomial is immutable and may be shared; each concurrent caller of Sample needs its own source.
type Binomial struct {
	coin Coin
	// trials = chunks 2^31 + (trials of rest, if any) + single
	chunks uint64
	chunk  *inversion
	rest   *inversion
	single uint64
}

// NewBinomial prepares the tables, of about 25 standard deviations entries of 16 bytes: microseconds for a thousand
// trials, a fraction of a second for 2^31. It refuses more than MaxBinomialTrials; zero trials always give 0.
func NewBinomial(trials uint64, coin Coin) (*Binomial, error) {
	if err := coin.validate(); err != nil {
		return nil, fmt.Errorf("binomial: %w", err)
	}
	if trials > MaxBinomialTrials {
		return nil, fmt.Errorf("binomial: trials = %d is above %d", trials, uint64(MaxBinomialTrials))
	}
	b := &Binomial{coin: coin, chunks: trials / maxInversionTrials}
	if b.chunks > 0 {
		b.chunk = newInversion(maxInversionTrials, coin, defaultPrecision)
	}
	rest := trials % maxInversionTrials
	if rest <= maxBiasedFlips || coin == Fair && rest <= maxFairFlips {
		b.single = rest
	} else {
		b.rest = newInversion(rest, coin, defaultPrecision)
	}
	return b, nil
}

// Sample returns one draw, using bits of src that it never looks at again.
func (b *Binomial) Sample(src rand.Source) uint64 {
	var sum uint64
	for range b.chunks {
		sum += b.chunk.sample(src)
	}
	if b.rest != nil {
		return sum + b.rest.sample(src)
	}
	return sum + b.coin.flips(src, b.single)
}
