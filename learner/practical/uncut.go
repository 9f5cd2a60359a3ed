package practical

import "math"

// uncut undoes in means, as far as the release itself tells, that reports of moments are cut to their norm M: means that are cut look nearer to 0
// than they are, and rows that are centred there keep a mean, in whose direction steps made for centred rows are too long. Where all rows are
// cut by the factor k and numbers have the fourth moments of a normal distribution, the release m, q (of x and x^2) obeys
//
//	M^2 = k sum q + k^2 + sum of numbers (3 q^2 - 2 m^4/k^2)
//
// Means are divided by the k that does, within what a row of the largest norm would be cut by; by nothing where noise may be why. Variances
// stay as cut as they are: steps that are longer by 1/k are what the constants of steps were chosen with.
func (p Problem) uncut(r released) released {
	var sum, fourth, means, squares, count float64
	for j, q := range r.square {
		sum += q
		if p.indicator(j) {
			continue
		}
		m := min(float64(r.mean[j]*r.mean[j]), max(q, 0)) // as (E x)^2 <= E x^2
		fourth += 3*float64(q*q) - 3*float64(r.sd*r.sd)
		means += 2 * float64(m*m)
		squares += float64(q * q)
		count++
	}
	// One deviation of what noise adds to the right side; of the sum of squares of noise alone, sd^2 sqrt(2 count).
	noise := r.sd * math.Sqrt(float64(len(r.square))+36*squares+18*count*r.sd*r.sd)
	norm := p.MomentsNorm()
	right := func(k float64) float64 { return k*sum + k*k + fourth - means/k/k - noise }
	low, high := min(1, norm/math.Sqrt(p.Bound*p.Bound*(1+p.Bound*p.Bound)+1)), 1.0
	if right(high) <= norm*norm {
		return r
	}
	for range 50 { // right grows with k
		if k := (low + high) / 2; right(k) > norm*norm {
			high = k
		} else {
			low = k
		}
	}
	for j, m := range r.mean {
		if r.mean[j] /= high; p.indicator(j) {
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
