package resque

import "math"

// A sum adds vectors with compensation (Neumaier 1974), so that its rounding does not grow with their number.
type sum struct{ total, lost []float64 }

func newSum(dim int) sum { return sum{make([]float64, dim), make([]float64, dim)} }

// add adds scale times x.
func (s sum) add(scale float64, x []float64) {
	for i, v := range x {
		v *= scale
		t := s.total[i] + v
		if math.Abs(s.total[i]) >= math.Abs(v) {
			s.lost[i] += (s.total[i] - t) + v
		} else {
			s.lost[i] += (v - t) + s.total[i]
		}
		s.total[i] = t
	}
}

// mean overwrites dst with the sum over n.
func (s sum) mean(dst []float64, n int) {
	for i := range dst {
		dst[i] = (s.total[i] + s.lost[i]) / float64(n)
	}
}

// reset makes it 0.
func (s sum) reset() {
	clear(s.total)
	clear(s.lost)
}
