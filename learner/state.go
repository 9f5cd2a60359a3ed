package learner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrState is wrapped by every error of UnmarshalBinary: the bytes are no state of this method and configuration.
var ErrState = errors.New("state refused")

const (
	stateVersion = 1

	methodPSGD = 1
	methodPAGD = 2

	headerLen = 1 + 1 + 4 + 8 + 8 + 8 + 2*8
)

// A state is all that a method keeps between steps. Its bytes, little endian, integrity being the store's business:
//
//	offset  length  field
//	0       1       version, 1
//	1       1       method: 1 PSGD, 2 PAGD
//	2       4       dimension d
//	6       8       planned steps T
//	14      8       steps taken, at most T
//	22      8       radius of the constraint set, float64
//	30      8       PSGD: eta; PAGD: v
//	38      8       PSGD: 0; PAGD: mu
//	46      8 d     PSGD: theta_t; PAGD: prox centre
//	46+8d   8 d     PSGD: mean of the points; PAGD: aggregate
type state struct {
	method        byte
	steps, taken  uint64
	radius        float64
	constants     [2]float64
	first, second []float64
}

func (s state) encode() []byte {
	out := make([]byte, 0, headerLen+16*len(s.first))
	out = append(out, stateVersion, s.method)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(s.first)))
	out = binary.LittleEndian.AppendUint64(out, s.steps)
	out = binary.LittleEndian.AppendUint64(out, s.taken)
	out = appendFloats(out, s.radius, s.constants[0], s.constants[1])
	out = appendFloats(out, s.first...)
	return appendFloats(out, s.second...)
}

// decode reads a state of the same configuration as want. Whatever it accepts encodes to the same bytes.
func decode(data []byte, want state, g geometry) (state, error) {
	if len(data) < 2 || data[0] != stateVersion {
		return state{}, fmt.Errorf("%w: not a state of version %d", ErrState, stateVersion)
	}
	if data[1] != want.method {
		return state{}, fmt.Errorf("%w: method %d, want %d", ErrState, data[1], want.method)
	}
	dim := len(want.first)
	if len(data) != headerLen+16*dim {
		return state{}, fmt.Errorf("%w: %d bytes, want %d for dimension %d", ErrState, len(data), headerLen+16*dim, dim)
	}
	if d := binary.LittleEndian.Uint32(data[2:]); d != uint32(dim) {
		return state{}, fmt.Errorf("%w: dimension %d, want %d", ErrState, d, dim)
	}
	s := state{method: want.method,
		steps: binary.LittleEndian.Uint64(data[6:]), taken: binary.LittleEndian.Uint64(data[14:])}
	if s.steps != want.steps {
		return state{}, fmt.Errorf("%w: planned for %d steps, want %d", ErrState, s.steps, want.steps)
	}
	if s.taken > s.steps {
		return state{}, fmt.Errorf("%w: %d steps taken of %d", ErrState, s.taken, s.steps)
	}
	s.radius, s.constants[0], s.constants[1] = floatAt(data, 22), floatAt(data, 30), floatAt(data, 38)
	for _, c := range [...]struct {
		name      string
		got, want float64
	}{{"radius", s.radius, want.radius}, {"first constant", s.constants[0], want.constants[0]}, {"second constant", s.constants[1], want.constants[1]}} {
		if math.Float64bits(c.got) != math.Float64bits(c.want) {
			return state{}, fmt.Errorf("%w: %s %v, want %v: the state belongs to another plan", ErrState, c.name, c.got, c.want)
		}
	}
	s.first, s.second = floatsAt(data, headerLen, dim), floatsAt(data, headerLen+8*dim, dim)
	if !g.set.Contains(s.first) || !g.set.Contains(s.second) {
		return state{}, fmt.Errorf("%w: a vector is outside the constraint set", ErrState)
	}
	if s.taken == 0 && !(slices.Equal(s.first, g.start) && slices.Equal(s.second, g.start)) {
		return state{}, fmt.Errorf("%w: moved without a step", ErrState)
	}
	return s, nil
}

func appendFloats(out []byte, xs ...float64) []byte {
	for _, x := range xs {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return out
}

func floatAt(data []byte, at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(data[at:]))
}

func floatsAt(data []byte, at, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = floatAt(data, at+8*i)
	}
	return out
}
