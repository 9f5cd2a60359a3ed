package task

import "math"

// affine maps values in [low, high] to a*x + b; values outside are first moved to the nearer bound. If unit is above 0,
// it maps the logarithm of scale log instead of the value, see base.
type affine struct {
	low, high float64
	scale     Scale
	a, b      float64
	mean, cut float64 // of scale standard: the center, and the bound
	unit      float64 // of scale log; else 0
}

// rounded is the scale of kind indicator: the nearer of 0 and 1.
const rounded Scale = "indicator"

func newAffine(low, high float64, scale Scale) affine {
	f := affine{low: low, high: high, scale: scale, a: 1}
	switch scale {
	case Unit:
		f.a = 1 / (high - low)
		f.b = -low / (high - low)
	case Symmetric:
		f.a = 2 / (high - low)
		f.b = -(low + high) / (high - low)
	}
	return f
}

// newStandard returns the map of scale standard, which moves values to at most clip times std from the mean.
func newStandard(mean, std, clip float64) affine {
	return affine{low: mean - clip*std, high: mean + clip*std, scale: Standard, a: 1 / std, b: -mean / std, mean: mean,
		cut: clip}
}

// affineOf returns the map of a numeric column.
func affineOf(c *Column) affine {
	switch {
	case c.Kind == Indicator:
		return newAffine(0, 1, rounded)
	case c.Scale == Standard:
		return newStandard(c.Mean, c.Std, c.Clip)
	case c.Scale == Log:
		f := newStandard(c.Mean, c.Std, c.Clip)
		f.unit = c.Unit
		return f
	}
	return newAffine(c.Min, c.Max, c.Scale)
}

// affine returns the map of every value.
func (v *Vector) affine() affine {
	if v.Kind == Indicator {
		return newAffine(0, 1, rounded)
	}
	return newAffine(v.Min, v.Max, v.Scale)
}

// apply maps x, which must not be NaN. The result respects bound in floating point too.
func (f affine) apply(x float64) float64 { return f.fit(f.base(x)) }

// fit maps a value; for scale log, its logarithm.
func (f affine) fit(x float64) float64 {
	if f.scale == Standard {
		return min(max((x-f.mean)*f.a, -f.cut), f.cut)
	}
	x = min(max(x, f.low), f.high)
	switch f.scale {
	case rounded:
		if x >= 0.5 {
			return 1
		}
		return 0
	case Unit:
		return min((x-f.low)/(f.high-f.low), 1)
	case Symmetric:
		// Exactly odd around the middle of a range that is symmetric, so that zero stays zero.
		return min(max((x-f.low)/(f.high-f.low)-(f.high-x)/(f.high-f.low), -1), 1)
	}
	return x
}

// invert maps a coordinate back to the value; for scale log, to its logarithm.
func (f affine) invert(y float64) float64 { return (y - f.b) / f.a }

// bound returns the largest magnitude of a mapped value.
func (f affine) bound() float64 {
	switch f.scale {
	case Raw, rounded:
		return math.Max(math.Abs(f.low), math.Abs(f.high))
	case Standard:
		return f.cut
	}
	return 1
}

// bounds returns the least and the largest mapped value.
func (f affine) bounds() [2]float64 { return [2]float64{f.fit(f.low), f.fit(f.high)} }
