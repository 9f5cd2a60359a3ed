package practical

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// A spectrum is a symmetric matrix without negative eigenvalues.
type spectrum struct {
	values  []float64
	vectors mat.Dense // columns
}

// eigen sets the negative eigenvalues of a symmetric matrix to 0.
func eigen(h *mat.SymDense) (s spectrum, err error) {
	var e mat.EigenSym
	if !e.Factorize(h, true) {
		return s, fmt.Errorf("practical: the second-moment matrix has no eigenvalues")
	}
	s.values = e.Values(nil)
	for i, v := range s.values {
		s.values[i] = max(v, 0)
	}
	e.VectorsTo(&s.vectors)
	return s, nil
}

// matrix returns sum_i f(l_i) v_i v_i' over eigenvalues l and their vectors v.
func (s *spectrum) matrix(f func(float64) float64) *mat.SymDense {
	d := len(s.values)
	var scaled, out mat.Dense
	scaled.Apply(func(_, j int, v float64) float64 { return v * f(s.values[j]) }, &s.vectors)
	out.Mul(&scaled, s.vectors.T())
	h := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			h.SetSym(i, j, out.At(i, j)/2+out.At(j, i)/2)
		}
	}
	return h
}

// solve returns (H + damping)^-1 b.
func (s *spectrum) solve(b *mat.VecDense, damping float64) *mat.VecDense {
	var out mat.VecDense
	out.MulVec(s.matrix(func(l float64) float64 { return 1 / (l + damping) }), b)
	return &out
}

// form returns x' H x.
func (s *spectrum) form(x *mat.VecDense) float64 {
	return mat.Inner(x, s.matrix(func(l float64) float64 { return l }), x)
}

// effective returns the number of coordinates seen above the damping, sum l/(l + damping).
func (s *spectrum) effective(damping float64) (k float64) {
	for _, l := range s.values {
		k += l / (l + damping)
	}
	return k
}

// whitener returns (H + damping)^-1/2 as convex.Frame has it.
func (s *spectrum) whitener(damping float64) []float64 {
	w := s.matrix(func(l float64) float64 { return 1 / math.Sqrt(l+damping) })
	var out []float64
	for i := range len(s.values) {
		for j := range i + 1 {
			out = append(out, w.At(i, j))
		}
	}
	return out
}
