package convex

import (
	"fmt"
	"math"
)

// Softmax is the multinomial logistic loss ln sum_j exp(s_j) - s_y of the scores s_j = <theta_j, x> of k classes, for labels
// y = 0 .. k-1. theta has k times as many entries as x: class after class.
//
// The gradient in the scores is the vector of probabilities minus a unit vector, of norm below sqrt(2), and its derivative
// diag(p) - p p^T has no eigenvalue above 1/2 (Boehning 1992); hence it is sqrt(2) X-Lipschitz and X^2/2-smooth for
// features of norm at most X.
type Softmax struct {
	Classes int // k, from 2 to 2^16
}

// Name returns "softmax".
func (Softmax) Name() string { return "softmax" }

// Parameters returns k times the number of features.
func (l Softmax) Parameters(features int) int { return l.Classes * features }

// Value returns ln sum_j exp(s_j - s_y), accurate for scores of any size.
func (l Softmax) Value(theta []float64, e Example) float64 {
	y := l.class(e.Label)
	own := l.scoreOf(theta, e, y)
	var total logSum
	for j := range l.Classes {
		if j != y {
			total.add(l.scoreOf(theta, e, j) - own)
		}
	}
	return total.withZero()
}

// Gradient writes (p_j - [j = y]) x to the block of each class j, p the probabilities.
func (l Softmax) Gradient(dst, theta []float64, e Example) {
	l.envelopeGradient(dst, theta, e, math.Inf(1))
}

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2: theta_j - (q_j - [j = y]) x / b, where the probabilities q at the prox
// solve ln q_j + c q_j = s_j + c [j = y] - t with sum q_j = 1 and c = ||x||^2/b. Newton's method finds t.
func (l Softmax) Prox(dst, theta []float64, e Example, b float64) {
	l.slopes(dst, theta, e, curvature(e, b))
	features := len(theta) / l.Classes
	for j := range l.Classes {
		block := dst[j*features : (j+1)*features]
		p := l.block(block)
		copy(block, theta[j*features:])
		e.AddTo(block, -p/b)
	}
}

func (l Softmax) envelopeGradient(dst, theta []float64, e Example, b float64) {
	l.slopes(dst, theta, e, curvature(e, b))
	features := len(theta) / l.Classes
	for j := range l.Classes {
		block := dst[j*features : (j+1)*features]
		p := l.block(block)
		clear(block)
		e.AddTo(block, p)
	}
}

// envelopeValue is the loss at the prox, in its scores s_j - c p_j, plus c ||p||^2/2 for the way to it.
func (l Softmax) envelopeValue(theta []float64, e Example, b float64) float64 {
	p := make([]float64, len(theta))
	c, features, y := curvature(e, b), len(theta)/l.Classes, l.class(e.Label)
	l.slopes(p, theta, e, c)
	shifted := func(j int) float64 {
		if j < 0 {
			return 0
		}
		return l.scoreOf(theta, e, j) - float64(c*l.block(p[j*features:]))
	}
	var total logSum
	var way float64
	for j := range l.Classes {
		v := l.block(p[j*features:])
		way += float64(v * v)
		if j != y {
			total.add(shifted(j) - shifted(y))
		}
	}
	return total.withZero() + float64(c*way)/2
}

// Lipschitz returns sqrt(2) x.
func (Softmax) Lipschitz(x float64) float64 { return math.Sqrt2 * x }

// Smoothness returns x^2/2.
func (Softmax) Smoothness(x float64) float64 { return x * x / 2 }

// CheckLabel accepts 0 .. k-1.
func (l Softmax) CheckLabel(y float64) error {
	if l.class(y) < 0 {
		return fmt.Errorf("label: outside the domain of the softmax loss, want a class from 0 to %d", l.Classes-1)
	}
	return nil
}

// class returns the label as an index, -1 for what is none.
func (l Softmax) class(y float64) int {
	if y >= 0 && y < float64(l.Classes) && y == math.Trunc(y) {
		return int(y)
	}
	return -1
}

// scoreOf returns <theta_j, x>, 0 for no class.
func (l Softmax) scoreOf(theta []float64, e Example, j int) float64 {
	if j < 0 {
		return 0
	}
	features := len(theta) / l.Classes
	return e.Dot(theta[j*features : (j+1)*features])
}

// block returns the first entry of a class's block, where slopes leaves its number; 0 without features.
func (Softmax) block(b []float64) float64 {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// slopes writes q_j - [j = y] to the first entry of every class's block of dst, which spares a device scratch memory.
func (l Softmax) slopes(dst, theta []float64, e Example, c float64) {
	l.scores(dst, theta, e)
	l.shrink(dst, l.class(e.Label), c, l.partition(dst, l.class(e.Label), c, math.Inf(-1)))
}

// scores writes every class's score to the first entry of its block of dst.
func (l Softmax) scores(dst, theta []float64, e Example) {
	features := len(theta) / l.Classes
	for j := 0; j < l.Classes && features > 0; j++ {
		dst[j*features] = l.scoreOf(theta, e, j)
	}
}

// shrink replaces scores by q_j - [j = y].
func (l Softmax) shrink(dst []float64, y int, c, t float64) {
	features := len(dst) / l.Classes
	var others float64
	for j := 0; j < l.Classes && features > 0; j++ {
		if j != y {
			dst[j*features] = expSlope(dst[j*features]-t, c)
			others += dst[j*features]
		}
	}
	if y >= 0 && features > 0 {
		dst[y*features] = -others // q_y - 1, also where q_y rounds to 1
	}
}

// partition returns the t at which the q_j of the scores in the first entries of dst's blocks sum to 1; without smoothing it is
// ln sum exp(s_j). Above the largest of s_j + c [j = y] it lies in [-c, ln k]: the largest q_j is at most 1 and at least 1/k. The search
// begins at the guess, or next to it.
func (l Softmax) partition(dst []float64, y int, c, guess float64) float64 {
	features := len(dst) / l.Classes
	at := func(j int) float64 {
		s := l.block(dst[j*features : (j+1)*features])
		if j == y {
			s += c
		}
		return s
	}
	top := math.Inf(-1)
	for j := range l.Classes {
		top = max(top, at(j))
	}
	if c == 0 {
		var total logSum
		for j := range l.Classes {
			total.add(at(j) - top)
		}
		return top + total.log()
	}
	most := math.Log(float64(l.Classes))
	return top + root(-c, most, min(max(guess-top, -c), most), func(t float64) (float64, float64) {
		var sum, derivative float64
		for j := range l.Classes {
			q := expSlope(at(j)-top-t, c)
			sum += q
			derivative += q / (1 + float64(c*q))
		}
		if math.Abs(sum-1) <= 0x1p-50 {
			return 0, 1 // all digits that the sum has
		}
		return -math.Log(sum), derivative / sum
	})
}

// logSum is the logarithm of a sum of exponentials that are added one by one; only exponentials of negative numbers are taken.
type logSum struct {
	top, sum float64 // the sum is sum exp(top)
	any      bool
}

func (s *logSum) add(a float64) {
	switch {
	case !s.any:
		s.top, s.sum, s.any = a, 1, true
	case a > s.top:
		s.top, s.sum = a, float64(s.sum*math.Exp(s.top-a))+1
	default:
		s.sum += math.Exp(a - s.top)
	}
}

func (s *logSum) log() float64 { return s.top + math.Log(s.sum) }

// withZero returns the logarithm of the sum and exp(0), accurate where the sum is small.
func (s *logSum) withZero() float64 {
	if s.top > 0 {
		return s.top + math.Log(s.sum+math.Exp(-s.top))
	}
	return math.Log1p(s.sum * math.Exp(s.top))
}
