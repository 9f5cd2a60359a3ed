package shuffle

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
)

// permute puts s in a uniformly random order. Every order has exactly the same probability (Fisher-Yates; bounded
// integers by rejection). A nil entropy means randomizer.NewEntropy, erased afterwards.
func permute[T any](s []T, entropy rand.Source) {
	if entropy == nil {
		own := randomizer.NewEntropy()
		defer erase(own)
		entropy = own
	}
	rand.New(entropy).Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// messages are a round's labelled bits in uniformly random order, coordinate by coordinate: how many messages bear a
// label is public and the same for all labels, so the order of labels carries nothing and is left out.
type messages struct {
	// Dim is the number of labels.
	Dim int
	// Each is the number of messages that bear one label: m g + all binomial trials.
	Each uint64
	// Bits holds Dim rows of ceil(Each/8) bytes. Bit i of a row is bit i mod 8 of byte i/8; padding bits are zero.
	Bits []byte
}

// newMessages generates the messages of a round from its released totals: it is a function of the release and fresh
// coins, so it can reveal nothing that the totals do not, and no user's bits are ever kept. limit bounds the size of
// Bits in bytes. A nil entropy means randomizer.NewEntropy, erased afterwards.
func newMessages(rel Release, p randomizer.Params, limit uint64, entropy rand.Source) (messages, error) {
	if err := p.Validate(); err != nil {
		return messages{}, err
	}
	if len(rel.Totals) != p.Dim {
		return messages{}, fmt.Errorf("messages: %d totals for Dim = %d", len(rel.Totals), p.Dim)
	}
	each, err := p.MaxTotal(rel.Users, rel.NoiseTrials)
	if err != nil {
		return messages{}, fmt.Errorf("messages: %w", err)
	}
	row := (each + 7) / 8
	if hi, size := bits.Mul64(row, uint64(p.Dim)); hi != 0 || size > limit || size > math.MaxInt {
		return messages{},
			fmt.Errorf("messages: %d messages for each of %d coordinates take more than the limit of %d bytes; release totals",
				each, p.Dim, limit)
	}
	for j, t := range rel.Totals {
		if t > each {
			return messages{}, fmt.Errorf("messages: total of coordinate %d is above the number of messages %d", j, each)
		}
	}
	if entropy == nil {
		own := randomizer.NewEntropy()
		defer erase(own)
		entropy = own
	}
	m := messages{Dim: p.Dim, Each: each, Bits: make([]byte, row*uint64(p.Dim))}
	rng := rand.New(entropy)
	for j, ones := range rel.Totals {
		scatter(rng, m.Bits[uint64(j)*row:][:row], ones, each)
	}
	return m, nil
}

// scatter sets ones of the first n bits, each choice with the same probability: bit i is set with probability
// (ones left)/(bits left), which by induction gives every choice probability 1/C(n, ones).
func scatter(rng *rand.Rand, row []byte, ones, n uint64) {
	for i := range n {
		if ones > 0 && rng.Uint64N(n-i) < ones {
			row[i/8] |= 1 << (i % 8)
			ones--
		}
	}
}

// tally counts the ones of every label: the totals. It refuses a shape that newMessages cannot have made.
func (m messages) tally() ([]uint64, error) {
	if m.Dim < 1 || m.Dim > randomizer.MaxDim || m.Each > math.MaxInt64 {
		return nil, fmt.Errorf("tally: Dim = %d or Each = %d is out of range", m.Dim, m.Each)
	}
	row := (m.Each + 7) / 8
	if hi, size := bits.Mul64(row, uint64(m.Dim)); hi != 0 || size != uint64(len(m.Bits)) {
		return nil, fmt.Errorf("tally: %d bytes for %d rows of %d bits", len(m.Bits), m.Dim, m.Each)
	}
	totals := make([]uint64, m.Dim)
	for j := range totals {
		for i, b := range m.Bits[uint64(j)*row:][:row] {
			if uint64(i) == row-1 && m.Each%8 != 0 && b>>(m.Each%8) != 0 {
				return nil, fmt.Errorf("tally: padding bits of row %d are set", j)
			}
			totals[j] += uint64(bits.OnesCount8(b))
		}
	}
	return totals, nil
}
