package split

import (
	"fmt"
	"math/bits"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/randomizer"
)

// maxBitsShared bounds d k, the bits of a report: Prio3's time and memory grow with it.
const maxBitsShared = 1 << 24

// shares is the number of aggregators.
const shares = 2

// Numbers of the two aggregators in Prio3.
const (
	leader = 0
	helper = 1
)

// Params fixes how the reports of one attempt are shared. Device, leader and helper each compute it from Task, Round,
// Open and Join; Prio3 does not bind it.
type Params struct {
	// Dim is d, the number of coordinates.
	Dim int
	// Bits is k: counts are in 0..g, g = 2^k - 1.
	Bits int
	// Context is Prio3's application context: the hash of what the seals of this attempt bind (manifest, task hash,
	// hashes of the signed Open and Join). It is the same for both parties.
	Context Hash
}

// BitsOf returns k of the lattice {0, ..., levels}, and an error unless levels is 2^k - 1: Prio3 proves that a count
// has k bits, so any other lattice would let counts above it pass.
func BitsOf(levels uint32) (int, error) {
	k := bits.Len32(levels)
	if levels < 1 || levels > randomizer.MaxLevels || levels != 1<<k-1 {
		return 0, fmt.Errorf("split: Levels = %d: want 2^k - 1, at most %d", levels, randomizer.MaxLevels-1)
	}
	return k, nil
}

// Validate refuses parameters without meaning.
func (p Params) Validate() error {
	most := bits.Len32(randomizer.MaxLevels - 1)
	switch {
	case p.Bits < 1 || p.Bits > most:
		return fmt.Errorf("split: Bits = %d is outside [1, %d]", p.Bits, most)
	case p.Dim < 1 || p.Dim > maxBitsShared/p.Bits:
		return fmt.Errorf("split: Dim = %d is outside [1, %d] at Bits = %d", p.Dim, maxBitsShared/p.Bits, p.Bits)
	}
	return nil
}

// chunk returns the length of a chunk in Prio3's proof. A proof of c = ceil(dk/chunk) gadget calls interpolates at the
// next power of two P above c, so c = P - 1 wastes none of them. P is the largest power of two that is at most the
// chunk: a larger one makes shorter prep shares and slower proofs.
func (p Params) chunk() uint {
	n := uint(p.Dim * p.Bits)
	size := uint(2)
	for {
		next := 2 * size
		if (n+next-2)/(next-1) < next {
			return (n + size - 2) / (size - 1)
		}
		size = next
	}
}

// newVec returns circl's Prio3SumVec for these parameters. It holds a generator of masks that two goroutines would
// corrupt, so every goroutine has its own.
func (p Params) newVec() (*sumvec.SumVec, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return sumvec.New(shares, uint(p.Dim), uint(p.Bits), p.chunk(), p.Context[:])
}

// Lengths are the lengths in bytes of what one user adds to messages and memory.
type Lengths struct {
	Public    int // public share, in the device's message and the exchange
	Leader    int // input share of the leader, in its ciphertext
	Helper    int // input share of the helper, in its ciphertext
	Prep      int // the leader's prep share, in a request
	Aggregate int // aggregate share: once a round, and in memory for each unanswered report
}

// Sizes returns the lengths for dim coordinates of bits bits.
func Sizes(dim, bits int) (Lengths, error) {
	vec, err := Params{Dim: dim, Bits: bits}.newVec()
	if err != nil {
		return Lengths{}, err
	}
	return lengths(vec), nil
}

// Lengths of what Prio3 is made of.
const (
	elementBytes = 16 // one number of the field
	seedBytes    = 32
)

func lengths(vec *sumvec.SumVec) Lengths {
	p := vec.Params()
	return Lengths{
		Public:    shares * seedBytes,
		Leader:    int(p.MeasurementLength()+p.ProofLength())*elementBytes + seedBytes,
		Helper:    2 * seedBytes,
		Prep:      int(p.VerifierLength())*elementBytes + seedBytes,
		Aggregate: int(p.OutputLength()) * elementBytes,
	}
}
