package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/panlearn/panlearn/learner/convex"
)

// components are the principal components of rows: the directions in which they vary most, and the point that they
// vary about.
type components struct {
	mean []float64
	// unit vectors, in the order of falling variance; of each the entry of largest magnitude is positive
	directions [][]float64
	variance   []float64 // of the rows in each direction
}

// principal finds the first k components of rows of a dimension, from the eigenvectors of their covariance.
func principal(rows []convex.Example, dim, k int) (components, error) {
	if k > dim || len(rows) < 2 {
		return components{},
			fmt.Errorf("%d components of %d rows of dimension %d: want at most the dimension, of two rows or more", k, len(rows),
				dim)
	}
	n := float64(len(rows))
	out := components{mean: make([]float64, dim)}
	product := mat.NewSymDense(dim, nil)
	for _, x := range rows {
		x.AddTo(out.mean, 1/n)
		for i, a := range x.Value {
			for j := i; j < len(x.Value); j++ {
				p, q := coordinate(x, i), coordinate(x, j)
				product.SetSym(p, q, product.At(p, q)+a*x.Value[j]/n)
			}
		}
	}
	for i, a := range out.mean {
		for j := i; j < dim; j++ {
			product.SetSym(i, j, product.At(i, j)-a*out.mean[j])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(product, true) {
		return components{}, fmt.Errorf("%d components of %d rows: the eigenvalues of the covariance did not converge", k,
			len(rows))
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil) // rising
	for i := range k {
		direction := mat.Col(nil, dim-1-i, &vectors)
		var largest float64
		for _, v := range direction {
			if math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 {
			for j := range direction {
				direction[j] = -direction[j]
			}
		}
		out.directions, out.variance = append(out.directions, direction), append(out.variance, values[dim-1-i])
	}
	return out, nil
}

// coordinate returns the index of the coordinate that the k-th value belongs to.
func coordinate(x convex.Example, k int) int {
	if x.Index == nil {
		return k
	}
	return int(x.Index[k])
}

// of returns the coordinates of a row in the components.
func (c components) of(x convex.Example) []float64 {
	out := make([]float64, len(c.directions))
	for i, direction := range c.directions {
		out[i] = x.Dot(direction)
		for j, v := range direction {
			out[i] -= float64(v * c.mean[j])
		}
	}
	return out
}
