package publicmodel

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Directions are coordinates z = Matrix f + Bias of a pool of features f: uncorrelated, with mean 0 and about variance
// 1 in the weights of the rows that they were made from.
type Directions struct {
	Matrix [][]float64
	Bias   []float64
}

// dampening of small eigenvalues, in units of the mean one.
const dampening = 1e-3

// Whiten returns the first directions of a pool, at most most: those of largest variance in the weights. rows are
// dense; weights are not negative.
func Whiten(rows [][]float64, weights []float64, most int) *Directions {
	width := len(rows[0])
	mean := make([]float64, width)
	total := 0.0
	for i, row := range rows {
		total += weights[i]
		for j, v := range row {
			mean[j] += weights[i] * v
		}
	}
	for j := range mean {
		mean[j] /= total
	}
	x := mat.NewDense(len(rows), width, nil)
	for i, row := range rows {
		root := math.Sqrt(weights[i] / total)
		out := x.RawRowView(i)
		for j, v := range row {
			out[j] = root * (v - mean[j])
		}
	}
	values, vectors := principal(x)
	sum := 0.0
	for _, v := range values {
		sum += max(v, 0)
	}
	d := &Directions{}
	for k, v := range values {
		if len(d.Matrix) == most || v < 1e-9*sum {
			break
		}
		line := make([]float64, width)
		bias, scale := 0.0, 1/math.Sqrt(v+dampening*sum/float64(width))
		for j := range line {
			line[j] = vectors.At(j, k) * scale
			bias -= line[j] * mean[j]
		}
		d.Matrix, d.Bias = append(d.Matrix, line), append(d.Bias, bias)
	}
	return d
}

// principal returns the eigenvalues of x'x, the largest first, and its eigenvectors as columns; the largest entry of
// each is positive. Where x has fewer rows than columns they come from xx'.
func principal(x *mat.Dense) ([]float64, *mat.Dense) {
	n, width := x.Dims()
	wide := n < width
	var gram mat.SymDense
	if wide {
		gram.SymOuterK(1, x)
	} else {
		gram.SymOuterK(1, x.T())
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(&gram, true) {
		panic("publicmodel: eigenvalues of a symmetric matrix: no convergence")
	}
	values := eigen.Values(nil)
	var own mat.Dense
	eigen.VectorsTo(&own)
	k := len(values)
	out := mat.NewDense(width, k, nil)
	if wide {
		out.Mul(x.T(), &own)
	} else {
		out.Copy(&own)
	}
	sorted := mat.NewDense(width, k, nil)
	for c := range k { // ascending, so from the last
		column := mat.Col(nil, k-1-c, out)
		norm, top := mat.Norm(mat.NewVecDense(width, column), 2), 0.0
		for _, v := range column {
			if math.Abs(v) > math.Abs(top) {
				top = v
			}
		}
		if norm > 0 {
			norm = math.Copysign(norm, top)
			for j := range column {
				column[j] /= norm
			}
		}
		sorted.SetCol(c, column)
	}
	for i := range k / 2 {
		values[i], values[k-1-i] = values[k-1-i], values[i]
	}
	return values, sorted
}
