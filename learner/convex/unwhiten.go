package convex

import (
	"errors"
	"math"
)

// Unwhiten overwrites dst with the vector that Whiten maps to g, or with g if there is no whitener. It returns an error
// if the whitener is not positive definite. dst and g must not share memory.
func (f *Frame) Unwhiten(dst, g []float64) error {
	copy(dst, g)
	if f.Whitener == nil {
		return nil
	}
	n := len(g)
	factor := make([][]float64, n) // of Cholesky: whitener = factor factor'
	row := f.Whitener
	for i := range n {
		factor[i] = make([]float64, i+1)
		for j := range i + 1 {
			sum := row[j]
			for k := range j {
				sum -= float64(factor[i][k] * factor[j][k])
			}
			if i > j {
				factor[i][j] = sum / factor[j][j]
				continue
			}
			if !(sum > 0) {
				return errors.New("frame: whitener: not positive definite")
			}
			factor[i][i] = math.Sqrt(sum)
		}
		row = row[i+1:]
	}
	for i := range n {
		for k := range i {
			dst[i] -= float64(factor[i][k] * dst[k])
		}
		dst[i] /= factor[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			dst[i] -= float64(factor[k][i] * dst[k])
		}
		dst[i] /= factor[i][i]
	}
	return nil
}
