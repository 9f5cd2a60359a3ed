package task

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// cross is a compiled Cross.
type cross struct {
	first   int   // first coordinate
	inputs  []int // of FeatureMap.inputs
	number  int   // index of the number in FeatureMap.inputs, or none
	widths  []int // their positions
	buckets int   // 0: one indicator for each combination
	seed    uint32
}

// at returns the position of a combination, or none. values are the values of all inputs.
func (c *cross) at(values []float64) int {
	var position uint32 // below 2^32, see maxCrossed
	for i, in := range c.inputs {
		if values[in] == none {
			return none
		}
		position = position*uint32(c.widths[i]) + uint32(values[in])
	}
	if c.buckets == 0 {
		return int(position)
	}
	little := [4]byte{byte(position), byte(position >> 8), byte(position >> 16), byte(position >> 24)}
	return int(murmur3(little[:], c.seed) % uint32(c.buckets))
}

// unrank returns the positions of the inputs in combination number n.
func (c *cross) unrank(n int) []int {
	out := make([]int, len(c.widths))
	for i, w := range slices.Backward(c.widths) {
		out[i] = n % w
		n /= w
	}
	return out
}

func (c Cross) width(f *Features) int {
	if c.Buckets > 0 {
		return c.Buckets
	}
	n := 1
	for _, name := range c.Columns {
		n *= f.column(name, false).positions()
	}
	return n
}

// width returns the number of products.
func (p *Polynomial) width() int {
	n := len(p.Columns)
	w := n * (n + 1) / 2
	if p.Degree == 3 {
		w += n * (n + 1) * (n + 2) / 6
	}
	return w
}

// products lists the products of n values, each as a nondecreasing list of positions: pairs first, then, for degree 3,
// triples.
func products(n, degree int) [][]int {
	var out [][]int
	for i := range n {
		for j := i; j < n; j++ {
			out = append(out, []int{i, j})
		}
	}
	if degree == 3 {
		for i := range n {
			for j := i; j < n; j++ {
				for k := j; k < n; k++ {
					out = append(out, []int{i, j, k})
				}
			}
		}
	}
	return out
}

// width returns the number of coordinates, without the intercept.
func (f *Features) width() int {
	n := 0
	if f.Vector != nil && !f.Vector.Hidden {
		n += f.Vector.Dimension
	}
	for i := range f.Columns {
		n += f.Columns[i].width()
	}
	for _, c := range f.Crosses {
		n += c.width(f)
	}
	if f.Polynomial != nil {
		n += f.Polynomial.width()
	}
	if f.Fourier != nil {
		n += f.Fourier.Dimension
	}
	if f.Public != nil && f.Public.model != nil {
		n += f.Public.model.width()
	}
	return n
}

// fourierMap is a compiled Fourier.
type fourierMap struct {
	inputs      []int     // numeric ones of FeatureMap.inputs; nil: every value of the vector
	frequencies []float64 // row i is w_i
	phases      []float64 // b_i
	amplitude   float64   // sqrt(2/D)
}

// newFourierMap draws the frequencies and phases for n scaled values. They are part of the task, so this is their
// definition, for every language. Let H(i, k) be the SHA-256 hash of the 17 bytes "panlearn fourier", 0x00 and the
// seed, i and k as 8 bytes each, big-endian, and U_1, U_2, U_3 its first three words of 8 bytes, big-endian, mapped to
// (floor(U/2^11) + 1/2) / 2^53. Then
//
//	w_i[2k], w_i[2k+1] = sqrt(2 gamma) sqrt(-2 ln U_1) cos(2 pi U_2), the same with sin,   of H(i, k)
//	b_i                = 2 pi U_3   of H(i, 0)
//
// with i and k from 0. The definition uses no generator, so no state or version of one matters.
func newFourierMap(f *Fourier, n int) *fourierMap {
	m := &fourierMap{
		frequencies: make([]float64, f.Dimension*n), phases: make([]float64, f.Dimension),
		amplitude: math.Sqrt(2 / float64(f.Dimension)),
	}
	width := math.Sqrt(2 * f.Gamma)
	for i := range f.Dimension {
		row := m.frequencies[i*n : (i+1)*n]
		for k := 0; 2*k < n; k++ {
			u := fourierWords(f.Seed, i, k)
			radius := width * math.Sqrt(-2*math.Log(u[0]))
			sin, cos := math.Sincos(2 * math.Pi * u[1])
			row[2*k] = radius * cos
			if 2*k+1 < n {
				row[2*k+1] = radius * sin
			}
			if k == 0 {
				m.phases[i] = 2 * math.Pi * u[2]
			}
		}
	}
	return m
}

// fourierWords returns U_1, U_2, U_3 of H(i, k), in (0, 1].
func fourierWords(seed, i, k int) (u [3]float64) {
	b := append(make([]byte, 0, 41), "panlearn fourier\x00"...)
	for _, v := range [...]int{seed, i, k} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	h := sha256.Sum256(b)
	for j := range u {
		u[j] = (float64(binary.BigEndian.Uint64(h[8*j:])>>11) + 0.5) * 0x1p-53
	}
	return u
}

// at returns coordinate i for the sources of an event. For a vector, sources are the values at the given positions, or
// all values if there are no positions.
func (m *fourierMap) at(i int, sources []float64, positions []int32) float64 {
	n := len(m.frequencies) / len(m.phases)
	row := m.frequencies[i*n : (i+1)*n]
	angle := m.phases[i]
	switch {
	case m.inputs != nil:
		for j, in := range m.inputs {
			angle += float64(row[j] * sources[in])
		}
	case positions != nil:
		for k, v := range sources {
			angle += float64(row[positions[k]] * v)
		}
	default:
		for j, v := range sources {
			angle += float64(row[j] * v)
		}
	}
	return m.amplitude * math.Cos(angle)
}
