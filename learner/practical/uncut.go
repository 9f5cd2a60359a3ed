package practical

import "math"

// uncut corrects means for the cut of reports of moments to norm M, as far as the release determines it. Means of cut
// reports are too near to 0, and rows centred by them keep a mean, in whose direction steps for centred rows are too
// long. If all rows are cut by the factor k, the release m, q (of x and x^2) satisfies
//
//	M^2 = k sum q + k^2 + k^2 sum of numbers E x^4,    k^2 E x^4 >= q^2 + 4 q m^2/k - 4 m^4/k^2
//
// where numbers are symmetric around their means: a fourth central moment is at least the square of the variance. Means
// are divided by the largest k that does not contradict that, so by no more than rows must have been cut, and not at
// all if noise may be the cause. The correction is close for rows far from zero, whose means determine the cut. For
// rows around zero only an assumed law could determine it: under the normal law, with three times that moment, rows of
// a lighter tail appear to be cut twenty times. Variances are not corrected, because the constants of steps were chosen
// with steps that are longer by 1/k.
func (s shape) uncut(r released) released {
	var sum, fourth, cross, means, squares, count float64
	for j, q := range r.square {
		sum += q
		if s.indicator(j) {
			continue
		}
		m := min(float64(r.mean[j]*r.mean[j]), max(q, 0)) // as (E x)^2 <= E x^2
		fourth += float64(q*q) - float64(r.sd*r.sd)
		cross += 4 * float64(m*q)
		means += 4 * float64(m*m)
		squares += float64(q * q)
		count++
	}
	// One deviation of what noise adds to the right side, and more; of the sum of squares of noise alone, sd^2 sqrt(2
	// count).
	noise := r.sd * math.Sqrt(float64(len(r.square))+36*squares+18*count*r.sd*r.sd)
	norm := s.MomentsNorm()
	contradicts := func(k float64) bool { return k*sum+k*k+fourth+cross/k-means/k/k-noise > norm*norm }
	least := min(1, norm/math.Sqrt(s.Bound*s.Bound*(1+s.Bound*s.Bound)+1)) // what a row of the largest norm is cut by
	low, high := 1.0, 1.0
	for step := math.Pow(least, 1./256); contradicts(low); low *= step { // which need not fall with k
		if high = low; low <= least {
			return r // no factor alone explains it
		}
	}
	if low == 1 {
		return r
	}
	for range 50 {
		if k := (low + high) / 2; contradicts(k) {
			high = k
		} else {
			low = k
		}
	}
	for j, m := range r.mean {
		if r.mean[j] /= high; s.indicator(j) {
			r.square[j] = r.mean[j]
		} else {
			r.square[j] += float64(m*m)/high/high - float64(m*m)/high
		}
	}
	for i := range r.label {
		r.label[i] /= high
	}
	r.sd /= high
	return r
}
