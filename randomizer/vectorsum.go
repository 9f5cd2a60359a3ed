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
	params  Params
	ball    ball
	entropy rand.Source
	own     *rand.ChaCha8 // entropy, if the caller gave none
	noise   *Binomial
	mask    uint64  // the trials' bits in a word that also rounds; 0 if there is none
	single  uint64  // the trials' bits in a word of their own; 0 if one word is not enough
	place   []int64 // the units added so far, from the centre; zero between reports
	unit    []int64 // scratch of a unit of several; nil if there is one
	few     []int64 // scratch of a unit that is zero in most coordinates
	added   uint64
	// replaced counts vectors with a NaN or an infinity, each added as the zero vector. It depends on content and must not
	// be exported.
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
	if p.vectors() > 1 {
		v.unit = make([]int64, p.Dim)
	}
	switch {
	case p.Coin != Fair:
	case p.Trials <= maxSharedTrials:
		v.mask = (1<<p.Trials - 1) << CoinBits
	case p.Trials <= 64:
		v.single = ^uint64(0) >> (64 - p.Trials)
	}
	return v, nil
}

// Reseed gives the system's generator a fresh seed, so that clones of a process, such as a virtual machine started
// twice from one snapshot, do not repeat each other's later draws. It does not change a generator passed to
// NewVectorSum: a replay needs its draws.
func (v *VectorSum) Reseed() {
	if v.own != nil {
		reseed(v.own)
	}
}

// Params returns the parameters.
func (v *VectorSum) Params() Params { return v.params }

// Format names the randomizer without its generator and what it adds up, so that one in a log line reveals nothing.
func (v VectorSum) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "vector sum of %d coordinates", v.params.Dim)
}

// Add places one unit of the next report, or with Params.Minimizer the one vector of all: x is clipped to the L2 norm
// ClipNorm, and snapped to the grid of rounding coins inside the ball of one unit, or of the lattice. A vector with a
// NaN or an infinity is the zero vector, and counted in replaced: a device that joins always sends.
//
// The errors, a wrong length and more vectors than a report has, depend on the program and not on what the units hold.
func (v *VectorSum) Add(x []float64) error {
	if len(x) != v.params.Dim {
		return fmt.Errorf("vector of %d coordinates, want Dim = %d", len(x), v.params.Dim)
	}
	if err := v.next(); err != nil {
		return err
	}
	at := v.place
	if v.unit != nil {
		at = v.unit
	}
	if !v.ball.snap(at, x) {
		v.replaced++
	}
	for j, s := range v.unit { // the triangle inequality keeps the sum within the lattice
		v.place[j] += s
	}
	return nil
}

// AddAt adds, as Add does and to the same bits, a vector that has x at these coordinates, each above the one before,
// and zeros elsewhere. It takes time in the length of x.
func (v *VectorSum) AddAt(index []int32, x []float64) error {
	if len(index) != len(x) {
		return fmt.Errorf("%d values for %d coordinates", len(x), len(index))
	}
	last := int32(-1)
	for k, j := range index {
		if j <= last || int(j) >= v.params.Dim {
			return fmt.Errorf("coordinate %d of a vector: not above the one before, or not below Dim = %d", k, v.params.Dim)
		}
		last = j
	}
	if err := v.next(); err != nil {
		return err
	}
	v.few = resize(v.few, len(x))
	if !v.ball.snap(v.few, x) {
		v.replaced++
	}
	for k, s := range v.few {
		v.place[index[k]] += s
	}
	return nil
}

// next counts one more unit.
func (v *VectorSum) next() error {
	if v.added == v.params.vectors() {
		return fmt.Errorf("vector %d of a report of %d", v.added+1, v.added)
	}
	v.added++
	return nil
}

// Encode draws the counts of a report about one unit: Add, then Draw. It refuses parameters of more units.
//
// Every x of the right length gives a report. Counts determine x up to the noise of one user. They are for Pack and a
// shuffle stage, and for nothing else.
func (v *VectorSum) Encode(dst []uint32, x []float64) ([]uint32, error) {
	if v.unit != nil {
		return nil, fmt.Errorf("encode: one unit, want Units = %d: they are added", v.params.Units)
	}
	if err := v.Add(x); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return v.Draw(dst), nil
}

// Draw draws the counts of the report about the units added since the last report, and resets for the next: the units'
// sum is rounded to the lattice without bias, once, and Bin(b, p) is added to every coordinate. Counts are in {0, ...,
// g+b}; with a window they are moved by w/2 - b/2 and clamped to {0, ..., g+w}. The result reuses dst's memory if it is
// large enough.
//
// A report is always about Params.Units units: those that were not added count as zero vectors.
//
// Use of entropy, fixed by the golden vectors. With the fair coin and b <= 40, or b = 0: one word for each coordinate
// in order, whose low 24 bits round and whose next b bits are the trials. Otherwise one word for each two
// coordinates, whose bits 0-23 round the first and 32-55 the second, and when all are rounded the trials of each in
// order, as in Binomial.Sample.
func (v *VectorSum) Draw(dst []uint32) []uint32 {
	dst = resize(dst, v.params.Dim)
	if v.mask != 0 || v.params.Trials == 0 {
		v.roundShared(dst)
	} else {
		v.round(dst)
	}
	clear(v.place)
	clear(v.unit)
	clear(v.few[:cap(v.few)])
	v.added = 0
	if w := v.params.Window; w > 0 {
		move, most := int64(w/2)-int64(v.params.Trials/2), int64(v.params.MaxCount())
		for j, c := range dst {
			dst[j] = uint32(min(max(int64(c)+move, 0), most))
		}
	}
	return dst
}

const roundMask = 1<<CoinBits - 1

func (v *VectorSum) roundShared(dst []uint32) {
	src, mask, centre := v.entropy, v.mask, int64(radius(v.params.Levels))
	place := v.place[:len(dst)]
	for j := range dst {
		w := src.Uint64()
		at := uint64(place[j] + centre)
		up := (w&roundMask - at&roundMask) >> 63 // 1 with probability (at mod 2^24)/2^24
		dst[j] = uint32(at>>CoinBits+up) + uint32(bits.OnesCount64(w&mask))
	}
}

func (v *VectorSum) round(dst []uint32) {
	src, centre := v.entropy, int64(radius(v.params.Levels))
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
