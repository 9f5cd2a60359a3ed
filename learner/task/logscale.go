package task

import (
	"math"
	"strconv"
)

// maxLog exceeds the logarithms, as of scale log, of all numbers.
const maxLog = 1000

// toLog returns sign(x) ln(1 + |x|/unit): near 0 it is x/unit, far from it the logarithm.
func toLog(x, unit float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)/unit), x) }

// FromLog returns the number whose value on scale log is v. Its magnitude is cut to the largest finite one.
func FromLog(v, unit float64) float64 {
	return math.Copysign(min(unit*math.Expm1(math.Abs(v)), math.MaxFloat64), v)
}

// base returns the argument of the affine map: x, or its logarithm for scale log.
func (f affine) base(x float64) float64 {
	if f.unit == 0 {
		return x
	}
	return toLog(x, f.unit)
}

// raw is the inverse of base.
func (f affine) raw(base float64) float64 {
	if f.unit == 0 {
		return base
	}
	return FromLog(base, f.unit)
}

// within reports whether x lies within the bounds.
func (f affine) within(x float64) bool {
	base := f.base(x)
	return base >= f.low && base <= f.high
}

// middle returns the default of Missing.Fill. For scale log it has six digits, so that it is the same on machines whose
// logarithms differ in the last digits.
func (c *Column) middle() float64 {
	switch {
	case c.Kind == Indicator:
		return 0
	case c.Scale == Standard:
		return c.Mean
	case c.Scale == Log && c.Unit > 0:
		x, _ := strconv.ParseFloat(strconv.FormatFloat(FromLog(c.Mean, c.Unit), 'g', 6, 64), 64)
		return min(max(x, -maxMagnitude), maxMagnitude)
	}
	return c.Min + (c.Max-c.Min)/2
}

// validateLog checks the keys that scales standard and log have instead of bounds.
func (c *Column) validateLog(path string) error {
	switch {
	case c.Scale == Standard && c.Unit != 0:
		return refuse(path+".unit", c.Unit, "nothing for scale standard")
	case c.Scale == Log && c.Unit < 1/maxMagnitude:
		return refuse(path+".unit", c.Unit, "a number > 0")
	case c.Scale == Log && math.Abs(c.Mean) > maxLog:
		return refuse(path+".mean", c.Mean, "a number from -%d to %d: it is of logarithms", maxLog, maxLog)
	}
	return nil
}

// affine returns the map of a label that is a number.
func (l *Label) affine() affine {
	if l.Scale != Log {
		return newAffine(l.Min, l.Max, l.Scale)
	}
	f := newAffine(toLog(l.Min, l.Unit), toLog(l.Max, l.Unit), Symmetric)
	f.unit = l.Unit
	return f
}

// validateScale checks how a label that is a number is scaled, once its bounds are known to be sound.
func (l *Label) validateScale() error {
	if err := oneOf("label.scale", l.Scale, Raw, Unit, Symmetric, Log); err != nil {
		return err
	}
	switch {
	case l.Scale != Log && l.Unit != 0:
		return refuse("label.unit", l.Unit, "nothing for scale %s", l.Scale)
	case l.Scale != Log:
		return nil
	case l.Unit < 1/maxMagnitude:
		return refuse("label.unit", l.Unit, "a number > 0, for scale log")
	}
	return validateRange("label", toLog(l.Min, l.Unit), toLog(l.Max, l.Unit))
}
