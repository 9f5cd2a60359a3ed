package publicmodel

import (
	"math"

	"gonum.org/v1/gonum/optimize"
)

// A Design is the coordinates of a linear model, sparse: row i has Value[j] at Index[j] for j from Start[i] to
// Start[i+1].
type Design struct {
	Width int
	Start []int
	Index []int32
	Value []float64
}

// NewDesign lays out the chosen columns of a matrix of rows, times a factor each.
func NewDesign(rows [][]float64, columns []int, factor []float64) *Design {
	d := &Design{Width: len(columns), Start: []int{0}}
	for _, row := range rows {
		for j, c := range columns {
			if v := row[c] * factor[j]; v != 0 {
				d.Index, d.Value = append(d.Index, int32(j)), append(d.Value, v)
			}
		}
		d.Start = append(d.Start, len(d.Index))
	}
	return d
}

// A linear is a linear model: the score of output k is Bias[k] and the sum of Weights[k][j] times coordinate j.
type linear struct {
	Weights [][]float64
	Bias    []float64
}

// scores writes the scores of a row.
func (m *linear) scores(dst []float64, d *Design, row int) {
	copy(dst, m.Bias)
	for at := d.Start[row]; at < d.Start[row+1]; at++ {
		j, v := d.Index[at], d.Value[at]
		for k := range dst {
			dst[k] += m.Weights[k][j] * v
		}
	}
}

// fitLinear minimizes the sum of the losses of some rows and ridge/2 times the squared norm of the weights. Numbers
// are fitted as they are: the caller scales them.
func fitLinear(d *Design, l *Labels, rows []int32, ridge float64) *linear {
	k, width := l.Outputs, d.Width+1 // the bias is the last weight
	x := make([]float64, k*width)
	for j, b := range l.base(rows) {
		x[j*width+d.Width] = b
	}
	view := func(x []float64) *linear {
		m := &linear{Bias: make([]float64, k)}
		for j := range k {
			m.Weights = append(m.Weights, x[j*width:][:d.Width])
			m.Bias[j] = x[j*width+d.Width]
		}
		return m
	}
	s, g, h := make([]float64, k), make([]float64, k), make([]float64, k)
	n := float64(len(rows))
	both := func(grad, x []float64) float64 {
		m, sum := view(x), 0.0
		clear(grad)
		for _, r := range rows {
			m.scores(s, d, int(r))
			sum += l.loss(s, int(r))
			if grad == nil {
				continue
			}
			l.slopes(g, h, s, int(r))
			for at := d.Start[r]; at < d.Start[r+1]; at++ {
				j, v := int(d.Index[at]), d.Value[at]
				for c := range k {
					grad[c*width+j] += g[c] * v
				}
			}
			for c := range k {
				grad[c*width+d.Width] += g[c]
			}
		}
		for c := range k {
			for j, w := range m.Weights[c] {
				sum += ridge / 2 * w * w
				if grad != nil {
					grad[c*width+j] += ridge * w
				}
			}
		}
		for i := range grad {
			grad[i] /= n
		}
		return sum / n
	}
	p := optimize.Problem{Func: func(x []float64) float64 { return both(nil, x) },
		Grad: func(grad, x []float64) { both(grad, x) }}
	settings := &optimize.Settings{GradientThreshold: 1e-5, MajorIterations: 300,
		Converger: &optimize.FunctionConverge{Absolute: 1e-8, Iterations: 5}}
	result, err := optimize.Minimize(p, x, settings, &optimize.LBFGS{})
	if result == nil || math.IsNaN(result.F) { // err alone says that the line search can go no farther
		panic("publicmodel: minimize a convex function: " + err.Error())
	}
	return view(result.X)
}
