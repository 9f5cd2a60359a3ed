package draft

import (
	"math"
	"slices"
	"strconv"
)

// An interval is public bounds of a number.
type interval struct{ low, high, step float64 }

// steps is about how many steps lie between friendly bounds.
const steps = 20

// outward rounds bounds outward to multiples of 1, 2 or 5 times a power of ten: whole numbers where the values are
// whole.
func outward(low, high float64, whole bool) interval {
	size := max(math.Abs(low), math.Abs(high))
	span := max(high-low, size*1e-9) // below that, multiples of a step could not be counted
	if high == low {
		span = max(size, 1)
	}
	exponent := int(math.Floor(math.Log10(span / steps)))
	mantissa := 1
	for _, m := range [...]int{1, 2, 5, 10} {
		if mantissa = m; multiple(float64(m), exponent) >= span/steps {
			break
		}
	}
	if whole && exponent < 0 {
		exponent, mantissa = 0, 1
	}
	step := multiple(float64(mantissa), exponent)
	at := func(k float64) float64 { return multiple(k*float64(mantissa), exponent) }
	i, j := math.Floor(low/step), math.Ceil(high/step)
	for at(i) > low { // the quotient was rounded
		i--
	}
	for at(j) < high {
		j++
	}
	if i == j {
		j++
	}
	return interval{at(i), at(j), step}
}

// multiple returns k times a power of ten, the float64 that such a decimal is read as.
func multiple(k float64, exponent int) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(k, 'f', 0, 64)+"e"+strconv.Itoa(exponent), 64)
	return x + 0 // no minus before a zero
}

// bounds returns bounds for a column of numbers, and the share of the kept values outside of them. A tail that
// goes three times as far from the median as the last hundredth begins is cut there: otherwise few values would
// leave all others no room.
func (c *column) bounds() (interval, float64) {
	sorted := slices.Sorted(slices.Values(c.kept))
	low, high := c.low, c.high
	const tail, far = 0.01, 3
	middle := quantile(sorted, 0.5)
	if end := tailEnd(sorted, middle, 1-tail); high-middle > far*(end-middle) && end > middle {
		high = end
	}
	if end := tailEnd(sorted, middle, tail); middle-low > far*(middle-end) && end < middle {
		low = end
	}
	out := outward(low, high, c.whole)
	outside := 0
	for _, x := range sorted {
		if x < out.low || x > out.high {
			outside++
		}
	}
	return out, float64(outside) / float64(len(sorted))
}

// tailEnd returns the value at which the tail begins. Where that is the middle itself, as in columns that are
// mostly zero, it looks among the values other than the middle.
func tailEnd(sorted []float64, middle, q float64) float64 {
	end := quantile(sorted, q)
	if end != middle {
		return end
	}
	rest := slices.DeleteFunc(slices.Clone(sorted), func(x float64) bool {
		return x == middle || (x < middle) == (q > 0.5)
	})
	if len(rest) == 0 {
		return middle
	}
	return quantile(rest, q)
}
