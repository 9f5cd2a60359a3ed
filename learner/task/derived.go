package task

import "slices"

// cross is a compiled Cross.
type cross struct {
	first   int   // first coordinate
	inputs  []int // of FeatureMap.inputs
	widths  []int // their positions
	buckets int   // 0: one indicator for each combination
	seed    uint32
}

// at returns the position of a combination, or none. values are those of all inputs.
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

// width is the number of products.
func (p *Polynomial) width() int {
	n := len(p.Columns)
	w := n * (n + 1) / 2
	if p.Degree == 3 {
		w += n * (n + 1) * (n + 2) / 6
	}
	return w
}

// products lists the products of n values, as positions that do not decrease: those of two, then, for degree 3, those of three.
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

// width is the number of coordinates, without the intercept.
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
	return n
}
