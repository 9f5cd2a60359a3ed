package publicmodel

import (
	"math"
	"slices"
)

// A kind distinguishes numbers from classes, and so selects the loss that a model of them minimizes.
type kind int

// The kinds.
const (
	Numbers kind = iota // squared loss; the label as it is
	Two                 // logistic loss; 0 or 1
	Many                // softmax loss; 0, 1, ..., Outputs-1
)

// Labels holds the labels of all rows.
type Labels struct {
	Kind    kind
	Y       []float64
	Outputs int // scores of a row: classes of Many, else 1
}

// loss returns the loss of a row's scores: of numbers half the squared error.
func (l *Labels) loss(scores []float64, row int) float64 {
	y := l.Y[row]
	switch l.Kind {
	case Numbers:
		return (scores[0] - y) * (scores[0] - y) / 2
	case Two:
		return softplus(scores[0]) - y*scores[0]
	}
	return logSum(scores) - scores[int(y)]
}

// slopes writes the first and second derivatives of a row's loss by each of its scores.
func (l *Labels) slopes(g, h, scores []float64, row int) {
	y := l.Y[row]
	switch l.Kind {
	case Numbers:
		g[0], h[0] = scores[0]-y, 1
	case Two:
		p := sigmoid(scores[0])
		g[0], h[0] = p-y, p*(1-p)
	default:
		total := logSum(scores)
		for k, s := range scores {
			p := math.Exp(s - total)
			g[k], h[k] = p, p*(1-p)
		}
		g[int(y)]--
	}
}

// base returns the best constant scores for the rows.
func (l *Labels) base(rows []int32) []float64 {
	out := make([]float64, l.Outputs)
	n := float64(len(rows))
	for _, r := range rows {
		if l.Kind == Many {
			out[int(l.Y[r])]++
		} else {
			out[0] += l.Y[r]
		}
	}
	for k := range out {
		switch share := (out[k] + 0.5) / (n + 1); l.Kind {
		case Numbers:
			out[k] /= n
		case Two:
			out[k] = math.Log(share / (1 - share))
		default:
			out[k] = math.Log(share)
		}
	}
	return out
}

// Mean returns the mean loss of scores, Outputs for each row, and its standard error.
func (l *Labels) Mean(scores []float64) (mean, deviation float64) {
	n := len(l.Y)
	losses := make([]float64, n)
	for i := range losses {
		losses[i] = l.loss(scores[i*l.Outputs:(i+1)*l.Outputs], i)
	}
	return meanOf(losses)
}

// Constant returns the mean loss of the best constant scores.
func (l *Labels) Constant() float64 {
	rows := make([]int32, len(l.Y))
	for i := range rows {
		rows[i] = int32(i)
	}
	mean, _ := l.Mean(slices.Repeat(l.base(rows), len(rows)))
	return mean
}

// Accuracy returns the share of the rows whose class has the largest score; of numbers 0.
func (l *Labels) Accuracy(scores []float64) float64 {
	right := 0
	for i, y := range l.Y {
		s := scores[i*l.Outputs : (i+1)*l.Outputs]
		switch l.Kind {
		case Two:
			if (s[0] > 0) == (y == 1) {
				right++
			}
		case Many:
			best := 0
			for k := range s {
				if s[k] > s[best] {
					best = k
				}
			}
			if best == int(y) {
				right++
			}
		}
	}
	return float64(right) / float64(len(l.Y))
}

// meanOf returns the mean of numbers and its standard error.
func meanOf(x []float64) (mean, deviation float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / (n * max(n-1, 1)))
}

func sigmoid(s float64) float64 {
	if s >= 0 {
		return 1 / (1 + math.Exp(-s))
	}
	e := math.Exp(s)
	return e / (1 + e)
}

func softplus(s float64) float64 { return max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))) }

// logSum returns the logarithm of the sum of the exponentials.
func logSum(s []float64) float64 {
	top := math.Inf(-1)
	for _, v := range s {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range s {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}
