package method

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrState is wrapped by every error of UnmarshalBinary: the bytes are no state of this method and configuration.
var ErrState = errors.New("state refused")

const (
	stateVersion = 2

	methodPSGD      = 1
	methodPAGD      = 2
	methodStream    = 3
	methodRestarts  = 4
	methodPractical = 5
	methodScores    = 6
	methodTail      = 7
	methodAPGD      = 8
	methodProx      = 9
	methodBank      = 10
	methodGuarded   = 11

	headerLen = 1 + 1 + 4 + 8 + 8 + sha256.Size
)

// A header begins every state. Its bytes, little endian, integrity being the store's business:
//
//	offset  length  field
//	0       1       version, 2
//	1       1       method: 1 PSGD and PGD, 2 PAGD, 3 PSGD without an end, 4 restarts and epochs, 5 practical,
//	                6 scores beside the gradient, 7 descent with the mean of its tail, 8 APGD,
//	                9 prox, 10 bank, 11 guarded
//	2       4       dimension d; scores: how many
//	6       8       steps taken; restarts: stages finished; practical: moments and matrices released; scores: rounds that had them
//	14      8       steps skipped; restarts, practical: 0; scores: 1 if an uncut follows the sums
//	22      32      SHA-256 of the configuration, the start included
//	54      8 d     PSGD: theta_t; PAGD, APGD, guarded: prox centre; prox: c_i; restarts: start of the current stage
//	54+8d   8 d     PSGD: mean of the points, tail: then the users in it; prox: mean of answers, then their number; PAGD, APGD: aggregate, guarded: then as in Guarded.MarshalBinary; restarts: the state of the current stage, of its own length
//
// For a bank the header is followed by its own numbers, see Bank.MarshalBinary; for practical by the learned values and
// the state of the inner method, see Practical.MarshalBinary; for scores by their sums and an uncut, once a round had
// them, and the state of the method without scores.
type header struct {
	method       byte
	dim          int
	count, other uint64
	config       [sha256.Size]byte
}

func (h header) append(out []byte) []byte {
	out = append(out, stateVersion, h.method)
	out = binary.LittleEndian.AppendUint32(out, uint32(h.dim))
	out = binary.LittleEndian.AppendUint64(out, h.count)
	out = binary.LittleEndian.AppendUint64(out, h.other)
	return append(out, h.config[:]...)
}

// readHeader reads the header of a state of the same method, dimension and configuration as want, and returns the
// remaining bytes.
func readHeader(data []byte, want header) (header, []byte, error) {
	if len(data) > 0 && data[0] != stateVersion {
		return header{}, nil, fmt.Errorf("%w: it has format version %d, this build reads version %d", ErrState, data[0], stateVersion)
	}
	if len(data) < headerLen {
		return header{}, nil, fmt.Errorf("%w: %d bytes, want at least %d", ErrState, len(data), headerLen)
	}
	if data[1] != want.method {
		return header{}, nil, fmt.Errorf("%w: method %d, want %d", ErrState, data[1], want.method)
	}
	if d := binary.LittleEndian.Uint32(data[2:]); d != uint32(want.dim) {
		return header{}, nil, fmt.Errorf("%w: dimension %d, want %d", ErrState, d, want.dim)
	}
	if [sha256.Size]byte(data[22:headerLen]) != want.config {
		return header{}, nil, fmt.Errorf("%w: it belongs to another plan", ErrState)
	}
	want.count, want.other = binary.LittleEndian.Uint64(data[6:]), binary.LittleEndian.Uint64(data[14:])
	return want, data[headerLen:], nil
}

func (b *base) header() header {
	return header{method: b.method, dim: len(b.start), count: b.taken, other: b.skipped, config: b.config}
}

// encode returns the state of a method with two vectors.
func (b *base) encode(first, second []float64) []byte {
	out := b.header().append(make([]byte, 0, headerLen+16*len(first)))
	return AppendFloats(AppendFloats(out, first...), second...)
}

// decode reads a state of the same configuration as b, and moves the counts. Whatever it accepts encodes to the same
// bytes.
func (b *base) decode(data []byte) (first, second []float64, err error) {
	h, rest, err := readHeader(data, b.header())
	if err != nil {
		return nil, nil, err
	}
	if len(rest) != 16*h.dim {
		return nil, nil, fmt.Errorf("%w: %d bytes, want %d for dimension %d", ErrState, len(data), headerLen+16*h.dim, h.dim)
	}
	if h.count > b.steps || h.other > b.steps-h.count {
		return nil, nil, fmt.Errorf("%w: %d steps taken and %d passed over of %d", ErrState, h.count, h.other, b.steps)
	}
	first, second = Floats(rest[:8*h.dim]), Floats(rest[8*h.dim:])
	if !b.set.Contains(first) || !b.set.Contains(second) {
		return nil, nil, fmt.Errorf("%w: a vector is outside the constraint set", ErrState)
	}
	if h.count == 0 && !(slices.Equal(first, b.start) && slices.Equal(second, b.start)) {
		return nil, nil, fmt.Errorf("%w: moved without a step", ErrState)
	}
	b.taken, b.skipped = h.count, h.other
	return first, second, nil
}

// AppendFloats appends numbers in 8 bytes each, little endian, as states and kept models have them.
func AppendFloats(out []byte, xs ...float64) []byte {
	for _, x := range xs {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return out
}

// Floats is the inverse of AppendFloats.
func Floats(data []byte) []float64 {
	out := make([]float64, len(data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out
}
