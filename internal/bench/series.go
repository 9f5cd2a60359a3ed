package main

import (
	"math"
	"slices"
)

// A series is one figure, measured again and again.
type series []float64

// median is NaN of an empty series.
func (s series) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(s)/2]
}

// over divides by a yardstick, repetition by repetition: neighbours in time, whatever else the machine did.
func (s series) over(yardstick series) series {
	out := make(series, len(s))
	for i, v := range s {
		out[i] = v / yardstick[i]
	}
	return out
}
