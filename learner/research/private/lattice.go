package private

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
)

const (
	noiseTrials = 1 << 16 // fair coins a coordinate: a standard deviation of 128 levels
	stepBits    = 20      // a level has 2^20 steps; less than a step is rounded toward zero, less than a level at random
)

// noiseVariance of a coordinate in levels squared: the coins', and the most that rounding to a level adds.
const noiseVariance = noiseTrials/4 + 0.25

// A lattice draws noise in integers: a place, in steps, is rounded to a level without bias and gets
// Bin(noiseTrials, 1/2) - noiseTrials/2. docs/proofs/theorem-a.md, the shift theorem, bounds what that tells of
// places that are some levels apart, wherever they lie.
type lattice struct {
	coins   *randomizer.Binomial
	entropy rand.Source
}

// newLattice makes one with these coins; nil makes them.
func newLattice(coins *randomizer.Binomial, entropy rand.Source) (lattice, error) {
	var err error
	if coins == nil {
		coins, err = randomizer.NewBinomial(noiseTrials, randomizer.Fair)
	}
	return lattice{coins, entropy}, err
}

// release overwrites dst with the noisy place, of which a level is that long, and clears place.
func (l lattice) release(dst []float64, place []int64, level float64) {
	const mask = 1<<stepBits - 1
	for j, at := range place {
		count := at >> stepBits // the level below, of a negative place too
		if l.entropy.Uint64()&mask < uint64(at&mask) {
			count++
		}
		count += int64(l.coins.Sample(l.entropy)) - noiseTrials/2
		dst[j] = float64(count) * level
	}
	clear(place)
}

// add adds x to the place, at radius steps a length. x has norm at most length up to rounding; what is added is, in
// integers, within radius.
func add(place []int64, x []float64, length float64, radius uint64) {
	scale := float64(radius) / length
	for gap := 0x1p-51; !within(x, scale, radius); gap *= 2 {
		scale = float64(radius) / length * max(0, 1-gap)
	}
	for j, v := range x {
		place[j] += int64(v * scale)
	}
}

// within reports whether the steps of x scale are within radius; it computes in 128 bits.
func within(x []float64, scale float64, radius uint64) bool {
	var hi, lo, carry uint64
	for _, v := range x {
		s := int64(v * scale)
		a := uint64(max(s, -s))
		h, m := bits.Mul64(a, a)
		lo, carry = bits.Add64(lo, m, 0)
		hi += h + carry
	}
	rhi, rlo := bits.Mul64(radius, radius)
	return hi < rhi || hi == rhi && lo <= rlo
}

// A sampler draws Poisson samples of n indices: each with probability rate/2^24, independently.
type sampler struct {
	size    *randomizer.Binomial
	n       int
	entropy rand.Source
	rng     *rand.Rand
	taken   map[int]bool
	out     []int
}

// rateBits is the grid of sampling rates.
const rateBits = randomizer.CoinBits

func newSampler(n int, rate randomizer.Coin, entropy rand.Source) (*sampler, error) {
	size, err := randomizer.NewBinomial(uint64(n), rate)
	if err != nil {
		return nil, fmt.Errorf("sampler: %w", err)
	}
	return &sampler{size: size, n: n, entropy: entropy, rng: rand.New(entropy), taken: map[int]bool{}}, nil
}

// draw returns the next sample, whose memory the one after it reuses. Given their number, which is binomial, the
// indices are a uniform subset (Floyd's algorithm, in exact uniform integers): together that is one coin an index.
func (s *sampler) draw() []int {
	m := int(s.size.Sample(s.entropy))
	s.out = s.out[:0]
	clear(s.taken)
	for j := s.n - m; j < s.n; j++ {
		i := s.rng.IntN(j + 1)
		if s.taken[i] {
			i = j
		}
		s.taken[i] = true
		s.out = append(s.out, i)
	}
	return s.out
}

// gridRate returns the largest rate of the grid that is at most q; 0 is none.
func gridRate(q float64) randomizer.Coin {
	return randomizer.Coin(max(0, min(math.Floor(q*(1<<rateBits)), 1<<rateBits-1)))
}
