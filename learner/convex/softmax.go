package convex

import (
	"fmt"
	"math"
	"slices"
)

// Softmax is the multinomial logistic loss ln sum_j exp(s_j) - s_y of the scores s_j = <theta_j, x> of k classes, for
// labels y = 0 .. k-1. theta has k times as many entries as x: class after class.
//
// The gradient in the scores is the vector of probabilities minus a unit vector, of norm below sqrt(2), and its
// derivative diag(p) - p p^T has no eigenvalue above 1/2 (Boehning 1992); hence it is sqrt(2) X-Lipschitz and
// X^2/2-smooth for features of norm at most X.
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

// Prox writes argmin_u l(u; e) + (b/2) ||u - theta||^2: theta_j - (q_j - [j = y]) x / b, where the probabilities q at
// the prox solve ln q_j + c q_j = s_j + c [j = y] - t with sum q_j = 1 and c = ||x||^2/b.
func (l Softmax) Prox(dst, theta []float64, e Example, b float64) {
	l.slopes(dst, theta, e, b)
	features := len(theta) / l.Classes
	for j := l.Classes - 1; j >= 0 && features > 0; j-- {
		block, p := dst[j*features:(j+1)*features], dst[j]
		copy(block, theta[j*features:])
		e.AddTo(block, -p/b)
	}
}

func (l Softmax) envelopeGradient(dst, theta []float64, e Example, b float64) {
	l.slopes(dst, theta, e, b)
	l.spread(dst, e)
}

// envelopeValue returns the loss at the prox, in its scores s_j - c p_j, plus c ||p||^2/2 for the way to it.
func (l Softmax) envelopeValue(theta []float64, e Example, b float64) float64 {
	p := make([]float64, max(len(theta), l.Classes))
	c, y := curvature(e, b), l.class(e.Label)
	if len(theta) > 0 {
		l.slopes(p, theta, e, b)
	}
	shifted := func(j int) float64 {
		if j < 0 {
			return 0
		}
		return l.scoreOf(theta, e, j) - float64(c*p[j])
	}
	var total logSum
	var way float64
	for j, v := range p[:l.Classes] {
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

// class returns the label as an index, or -1 if it is not a class.
func (l Softmax) class(y float64) int {
	if y >= 0 && y < float64(l.Classes) && y == math.Trunc(y) {
		return int(y)
	}
	return -1
}

// scoreOf returns <theta_j, x>, or 0 if j is not a class.
func (l Softmax) scoreOf(theta []float64, e Example, j int) float64 {
	if j < 0 {
		return 0
	}
	features := len(theta) / l.Classes
	return e.Dot(theta[j*features : (j+1)*features])
}

// slopes writes q_j - [j = y] to dst[j], for every class j, which spares a device scratch memory. They are the
// slopes of the envelope with parameter b, or of the loss itself for a label that is none.
func (l Softmax) slopes(dst, theta []float64, e Example, b float64) {
	if len(dst) == 0 {
		return
	}
	s, y := l.scores(dst, theta, e), l.class(e.Label)
	if math.IsInf(b, 1) || y < 0 {
		t, _ := partition(s, y)
		probabilities(s, y, t)
		return
	}
	cut := newTempered(s, y, tempering(e, b), math.Inf(1))
	cut.slopes(s)
}

// tempering returns c = ||x||^2/b. It returns 0 only where b is +Inf: the slopes at the smallest c that it
// returns equal those at 0, to the last digit.
func tempering(e Example, b float64) float64 {
	if math.IsInf(b, 1) {
		return 0
	}
	return max(curvature(e, b), 0x1p-60)
}

// scores writes every class's score to dst[j], and returns that part of dst.
func (l Softmax) scores(dst, theta []float64, e Example) []float64 {
	for j := range l.Classes {
		dst[j] = l.scoreOf(theta, e, j)
	}
	return dst[:l.Classes]
}

// spread writes the features times dst[j] to the block of each class j of dst.
func (l Softmax) spread(dst []float64, e Example) {
	features := len(dst) / l.Classes
	for j := l.Classes - 1; j >= 0 && features > 0; j-- { // numbers that are still to be read lie before the block
		block, p := dst[j*features:(j+1)*features], dst[j]
		clear(block)
		e.AddTo(block, p)
	}
}

// partition returns t = ln sum exp(s_j), and the norm of the slopes exp(s_j - t) - [j = y].
func partition(s []float64, y int) (t, norm float64) {
	top := math.Inf(-1)
	for _, v := range s {
		top = max(top, v)
	}
	var total logSum
	for _, v := range s {
		total.add(v - top)
	}
	t = top + total.log()
	var others, squares float64
	for j, v := range s {
		if j != y {
			q := math.Exp(v - t)
			others += q
			squares += float64(q * q)
		}
	}
	if y >= 0 {
		squares += float64(others * others)
	}
	return t, math.Sqrt(squares)
}

// probabilities replaces scores by exp(s_j - t) - [j = y].
func probabilities(s []float64, y int, t float64) {
	var others float64
	for j, v := range s {
		if j != y {
			s[j] = Normal(math.Exp(v - t))
			others += s[j]
		}
	}
	if y >= 0 {
		s[y] = -others // q_y - 1, also where q_y rounds to 1
	}
}

// logSum is the logarithm of a sum of exponentials that are added one by one; only exponentials of negative numbers
// are taken.
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

func softmaxShape(d Declaration) ClassShape {
	k := float64(d.Classes)
	return ClassShape{Slope: math.Sqrt(1 - 1/k), Bend: topOfShares, Noise: 2,
		Length: func(share, squares float64) float64 {
			return math.Sqrt((1-share)*(1-share) + squares - share*share)
		},
		Square: func(share, squares float64) float64 { return 1 - 2*share + squares },
		Stream: streamShape{Planned: 0.6 / k, Curvature: 0.6 / k, Slope: 0.6 / k, Spread: 2 * math.Sqrt(k-1),
			Trust: 1.5 / k}}
}

// topOfShares returns the largest eigenvalue of diag(s) - s s', the root between the two largest shares of sum
// s_i^2/(s_i - x) = 1.
func topOfShares(shares []float64) float64 {
	sorted := slices.Sorted(slices.Values(shares))
	low, high := sorted[len(sorted)-2], sorted[len(sorted)-1]
	for range 60 {
		x := low/2 + high/2
		sum := 0.0
		for _, s := range sorted {
			sum += s * s / (s - x)
		}
		if sum > 1 {
			high = x
		} else {
			low = x
		}
	}
	return high
}
