package curator

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A filter takes the mean of C points, C even, without those that are far from most others (Lowy, Liu and Asi 2024,
// Algorithms 1 and 2). Its numbers are public. Counting and weighing compare all pairs, whatever the points are.
type filter struct {
	score float64 // r_s: how near two points are that count in the score
	near  float64 // r_f: how near two points are that weigh for each other; r_s to 2 r_s
	full  float64 // U, above C/2 + 2 and at most C: a point weighs 1 that has so many near it, itself included
}

// validate refuses a filter for which Lemma W is not proved.
func (f filter) validate(c int) error {
	half := float64(c) / 2
	switch {
	case c < 6 || c%2 != 0:
		return fmt.Errorf("filter: %d points: want an even number from 6 on", c)
	case !(f.score > 1e-100) || !(f.near >= f.score) || math.IsInf(f.near, 1):
		return fmt.Errorf("filter: radii %v and %v: want positive numbers, the second not below the first", f.score, f.near)
	case !(f.full > half+2) || !(f.full <= float64(c)):
		return fmt.Errorf("filter: U = %v of %d points: want above %v and at most %d", f.full, c, half+2, c)
	}
	return nil
}

// scaled returns the filter with radii in units of tau.
func (f filter) scaled(tau float64) filter { return filter{f.score * tau, f.near * tau, f.full} }

// scoreSensitivity bounds the change of concentrationScore when one of c points is replaced: 2(C-1), in
// pairs.
func scoreSensitivity(c int) int { return 2 * (c - 1) }

// sensitivity returns S_U of Lemma W: it bounds the distance of the weighted means of two lists of c points
// that differ in one point, if the score of one of the lists is at least U C pairs. It covers the error of
// floating-point numbers no longer than ball (docs/proofs/curator.md, the filter).
func (f filter) sensitivity(c int, ball float64) float64 {
	if err := f.validate(c); err != nil {
		panic("curator: " + err.Error())
	}
	n := float64(c)
	mass := 2*f.full - n // the least sum of the weights, by the mean of the counts
	if f.near >= 2*f.score {
		mass = f.full // all who are near the point that has the most are near each other
	}
	s := 2 * f.near * ((n-1)/(f.full-n/2) + 1) / mass
	return s*(1+0x1p-40) + 4*(n+8)*0x1p-53*ball
}

// counts returns the ordered pairs of points within r_s of each other, a point and itself among them: the
// concentration score times C; and of each point how many are within r_f, itself included. It compares all pairs in
// all coordinates.
//
// Two points that are counted as near are, whatever rounding does: squares are held against a radius that is
// smaller by what d of them can err. For the score it is smaller by that once more, so that two that are scored
// with a third are also counted within r_f >= 2 r_s of each other, as Lemma W has it.
func (f filter) counts(points [][]float64) (pairs int, near []int) {
	c := len(points)
	near = make([]int, c)
	shrink := float64(len(points[0])+8) * 0x1p-52
	scored, weighed := f.score*f.score*(1-2*shrink), f.near*f.near*(1-shrink)
	for i, a := range points {
		near[i]++
		for j, b := range points[:i] {
			square := distance2(a, b)
			n := within(square, weighed)
			near[i] += n
			near[j] += n
			pairs += within(square, scored)
		}
	}
	return c + 2*pairs, near
}

// within returns 1 for numbers up to most, and 0 for others and NaN.
func within(x, most float64) int {
	if x <= most {
		return 1
	}
	return 0
}

// distance2 returns the square of the distance, in four sums of every fourth coordinate.
func distance2(a, b []float64) float64 {
	var p, q, r, s float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		d0, d1, d2, d3 := x[0]-y[0], x[1]-y[1], x[2]-y[2], x[3]-y[3]
		p += float64(d0 * d0)
		q += float64(d1 * d1)
		r += float64(d2 * d2)
		s += float64(d3 * d3)
	}
	for ; i < len(a); i++ {
		d := a[i] - b[i]
		p += float64(d * d)
	}
	return (p + q) + (r + s)
}

// weights turns the number of points near each into its weight: 0 up to C/2, 1 from U on, linear between.
func (f filter) weights(near []int) []float64 {
	half := float64(len(near)) / 2
	w := make([]float64, len(near))
	for j, h := range near {
		w[j] = min(max((float64(h)-half)/(f.full-half), 0), 1)
	}
	return w
}

// coins turns the weights into 0 or 1, independently and with these probabilities up to 2^-53: the inclusion rule
// of the paper. Each takes one word of entropy. False: none is 1.
func coins(w []float64, entropy rand.Source) bool {
	sum := 0
	for j, p := range w {
		u := float64(entropy.Uint64()>>11) * 0x1p-53
		n := within(u, math.Nextafter(p, -1)) // u < p: 0 never, 1 always
		w[j] = float64(n)
		sum += n
	}
	return sum > 0
}

// weightedMean overwrites dst with sum w_j y_j / sum w_j, or with zeros where nothing weighs. Points without weight
// take as long as others.
func weightedMean(dst []float64, points [][]float64, w []float64) {
	clear(dst)
	var mass float64
	for j, y := range points {
		mass += w[j]
		for k, v := range y {
			dst[k] += float64(w[j] * v)
		}
	}
	if mass == 0 {
		mass = 1
	}
	for k := range dst {
		dst[k] /= mass
	}
}
