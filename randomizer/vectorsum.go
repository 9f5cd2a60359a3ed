package randomizer

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// maxSharedTrials fair flips fit the word that also rounds: 24 + 40 bits.
const maxSharedTrials = 64 - CoinBits

// A VectorSum is the local randomizer of P_VEC (ICLR 2022, Algorithms 1 and 2). It owns scratch memory and an entropy
// source, and is not for concurrent use.
type VectorSum struct {
	params   Params
	ball     ball
	entropy  rand.Source
	own      *rand.ChaCha8 // entropy, where nobody else gave it
	noise    *Binomial
	mask     uint64  // the trials' bits in a word that also rounds; 0 if there is none
	single   uint64  // the trials' bits in a word of their own; 0 if one word is not enough
	place    []int64 // scratch; zero between calls
	replaced uint64
}

// NewVectorSum validates p and prepares the noise. A nil entropy means NewEntropy.
func NewVectorSum(p Params, entropy rand.Source) (*VectorSum, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	noise, err := NewBinomial(uint64(p.Trials), p.Coin)
	if err != nil {
		return nil, err
	}
	var own *rand.ChaCha8
	if entropy == nil {
		own = NewEntropy()
		entropy = own
	}
	v := &VectorSum{params: p, ball: newBall(p), entropy: entropy, own: own, noise: noise, place: make([]int64, p.Dim)}
	switch {
	case p.Coin != Fair:
	case p.Trials <= maxSharedTrials:
		v.mask = (1<<p.Trials - 1) << CoinBits
	case p.Trials <= 64:
		v.single = ^uint64(0) >> (64 - p.Trials)
	}
	return v, nil
}

// Reseed starts the system's generator anew, so that a process that was cloned with its memory, such as a virtual machine started twice from
// one snapshot, repeats no draw that follows. A generator that was given to NewVectorSum stays as it is: a replay wants its draws.
func (v *VectorSum) Reseed() {
	if v.own != nil {
		reseed(v.own)
	}
}

// Params returns the parameters.
func (v *VectorSum) Params() Params { return v.params }

// String names the randomizer without its generator, so that one in a log line reveals nothing.
func (v *VectorSum) String() string { return fmt.Sprintf("vector sum of %d coordinates", v.params.Dim) }

// GoString is String.
func (v *VectorSum) GoString() string { return v.String() }

// Replaced returns how many vectors with a NaN or an infinity have been encoded as the zero vector. It depends on
// content: it is for the local operator's log and must not be exported.
func (v *VectorSum) Replaced() uint64 { return v.replaced }

// Encode draws the counts of one report: x is clipped to the L2 norm ClipNorm, snapped to the grid of rounding coins
// inside the ball, rounded to the lattice without bias, and every coordinate gets Bin(b, p). Counts are in {0, ...,
// g+b}. The result reuses dst's memory if it is large enough.
//
// Every x of the right length gives a report: a device that joins always sends, so a vector with a NaN or an
// infinity is encoded as the zero vector and counted in Replaced. The only error is a wrong length, which
// depends on the program and not on the event.
//
// Counts determine x up to the noise of one user. They are for Pack and a shuffle stage, and for nothing else.
//
// Use of entropy, fixed by the golden vectors. With the fair coin and b <= 40, or b = 0: one word for each coordinate
// in order, whose low 24 bits round and whose next b bits are the trials. Otherwise one word for each two
// coordinates, whose bits 0-23 round the first and 32-55 the second, and when all are rounded the trials of each in
// order, as in Binomial.Sample.
func (v *VectorSum) Encode(dst []uint32, x []float64) ([]uint32, error) {
	if len(x) != v.params.Dim {
		return nil, fmt.Errorf("encode: vector of %d coordinates, want Dim = %d", len(x), v.params.Dim)
	}
	dst = resize(dst, len(x))
	if !v.ball.snap(v.place, x) {
		v.replaced++
	}
	if v.mask != 0 || v.params.Trials == 0 {
		v.roundShared(dst)
	} else {
		v.round(dst)
	}
	clear(v.place)
	return dst, nil
}

const roundMask = 1<<CoinBits - 1

func (v *VectorSum) roundShared(dst []uint32) {
	src, mask, centre := v.entropy, v.mask, int64(v.ball.radius)
	place := v.place[:len(dst)]
	for j := range dst {
		w := src.Uint64()
		at := uint64(place[j] + centre)
		up := (w&roundMask - at&roundMask) >> 63 // 1 with probability (at mod 2^24)/2^24
		dst[j] = uint32(at>>CoinBits+up) + uint32(bits.OnesCount64(w&mask))
	}
}

func (v *VectorSum) round(dst []uint32) {
	src, centre := v.entropy, int64(v.ball.radius)
	place := v.place[:len(dst)]
	var w uint64
	for j := range dst {
		if j%2 == 0 {
			w = src.Uint64()
		} else {
			w >>= 32
		}
		at := uint64(place[j] + centre)
		up := (w&roundMask - at&roundMask) >> 63
		dst[j] = uint32(at>>CoinBits + up)
	}
	if v.single != 0 {
		for j := range dst {
			dst[j] += uint32(bits.OnesCount64(src.Uint64() & v.single))
		}
		return
	}
	for j := range dst {
		dst[j] += uint32(v.noise.Sample(src))
	}
}
