package practical

import "math"

// uncut undoes in means, as far as the release itself tells, that reports of moments are cut to their norm M: means
// that are cut look nearer to 0 than they are, and rows that are centred there keep a mean, in whose direction steps
// made for centred rows are too long. Where all rows are cut by the factor k the release m, q (of x and x^2) obeys
//
//	M^2 = k sum q + k^2 + k^2 sum of numbers E x^4,    k^2 E x^4 >= q^2 + 4 q m^2/k - 4 m^4/k^2
//
// where numbers are symmetric around their means: a fourth central moment is at least the square of the
// variance. Means are divided by the largest k that does not contradict that, so by no more than rows must have
// been cut; by nothing where noise may be the cause. That is near for rows far from zero, whose means say how
// they were cut. Of rows around zero only an assumed law could: with the normal one, of three times that
// moment, rows of a lighter tail seem cut twenty times. Variances stay as cut as they are: steps that are
// longer by 1/k are what the constants of steps were chosen with.
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
