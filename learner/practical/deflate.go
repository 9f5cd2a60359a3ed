package practical

import "math"

// deflate makes the mean of u short; the mean is as uncertain as the noise of each center.
func (c *coordinates) deflate(center []float64, sd float64) {
	c.away, c.mean = make([]float64, len(center)), 0
	for j, s := range c.scale {
		c.away[j] = center[j] * s
		c.mean += float64(c.away[j] * c.away[j])
	}
	c.uncut = c.square + c.mean
	c.mean /= 1 + c.mean
	for _, s := range c.scale {
		c.mean += sd * sd * s * s
	}
}

// whitener returns the root of the inverse of 1 + m m', m the mean of u. It brings rows that are far from zero only
// along m as near as the others.
func (c *coordinates) whitener() (lower []float64) {
	var square float64
	for _, m := range c.away {
		square += float64(m * m)
	}
	factor := -square / (1 + square + math.Sqrt(1+square)) // 1/sqrt(1 + square) - 1
	root := math.Sqrt(max(square, math.SmallestNonzeroFloat64))
	for i, m := range c.away {
		for j := range i + 1 {
			w := factor * (m / root) * (c.away[j] / root)
			if i == j {
				w++
			}
			lower = append(lower, w)
		}
	}
	return lower
}

// level moves a block from zero to a mean score: along the intercept, or else along the mean of u, by the least squares
// fit of a constant to rows of second moment 1 + m m'. If the mean is unknown the block stays.
func (l *Learned) level(block []float64, at coordinates, score float64) {
	if l.Frame.Intercept != 0 {
		block[len(block)-1] = score / l.Frame.Intercept
		return
	}
	var square float64
	for _, m := range at.away {
		square += float64(m * m)
	}
	for j, m := range at.away {
		block[j] = score * m / math.Sqrt(1+square)
	}
}
