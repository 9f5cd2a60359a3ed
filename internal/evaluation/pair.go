package evaluation

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the confidence of the intervals.
const Confidence = 0.95

// A Difference is a figure of the second of two models minus the same figure of the first, with an interval that
// contains the difference of their expectations in about a share Confidence of samples.
type Difference struct {
	Value float64 `json:"value"` // second minus first
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Decided reports whether the interval leaves zero out.
func (d Difference) Decided() bool { return d.Low > 0 || d.High < 0 }

// A Pair adds up what two models are worth on the same events, one value of each an event. The zero value is ready.
type Pair struct {
	n                    float64
	first, second        float64 // means
	firsts, seconds, mix float64 // sums of squares and products of the distances from the means
}

// Add takes an event's two values (Welford's recurrence, for two at a time).
func (p *Pair) Add(first, second float64) { p.add(first, second, 1) }

func (p *Pair) add(first, second, weight float64) {
	p.n += weight
	a, b := first-p.first, second-p.second
	p.first += a * weight / p.n
	p.second += b * weight / p.n
	p.firsts += weight * a * (first - p.first)
	p.seconds += weight * b * (second - p.second)
	p.mix += weight * a * (second - p.second)
}

// Means returns the difference of the two means, with the normal interval of the mean of paired differences.
func (p *Pair) Means() Difference { return p.around(p.second-p.first, 1, 1) }

// Roots returns the difference of the roots of the two means, of errors that are squares, by the delta
// method.
func (p *Pair) Roots() Difference {
	slope := func(mean float64) float64 {
		if mean == 0 { // all of its values are 0 then
			return 0
		}
		return 1 / (2 * math.Sqrt(mean))
	}
	return p.around(math.Sqrt(p.second)-math.Sqrt(p.first), slope(p.first), slope(p.second))
}

// Shares returns the difference of the two means of values that are 0 or 1. The interval is the one of
// Agresti and Min (Statistics in Medicine 24, 2005): the normal one after half an event has been added to
// each of the four kinds, which holds where few events differ too.
func (p *Pair) Shares() Difference {
	with, value := *p, p.second-p.first
	for _, e := range [...][2]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		with.add(e[0], e[1], 0.5)
	}
	out := with.around(with.second-with.first, 1, 1)
	return Difference{Value: value, Low: max(-1, min(out.Low, value)), High: min(1, max(out.High, value))}
}

// around returns the normal interval around value; first and second are the derivatives of value by the terms' means.
func (p *Pair) around(value, first, second float64) Difference {
	variance := max(0, second*second*p.seconds+first*first*p.firsts-2*first*second*p.mix) / p.n
	half := distuv.UnitNormal.Quantile((1+Confidence)/2) * math.Sqrt(variance/p.n)
	return Difference{Value: value, Low: value - half, High: value + half}
}
