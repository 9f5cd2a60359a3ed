package main

import (
	"math"
	"testing"
)

func TestSeries(t *testing.T) {
	if got := (series{3, 1, 2}).median(); got != 2 {
		t.Errorf("median of three: %v", got)
	}
	if got := (series{4, 1, 2, 3}).median(); got != 2.5 {
		t.Errorf("median of four: %v", got)
	}
	if got := (series{}).median(); !math.IsNaN(got) {
		t.Errorf("median of none: %v", got)
	}
	// Ratios are taken before the median: a machine that is slow for one repetition is slow for both.
	r := newRow("g", "w", "ms", series{1, 20, 3}).beside("y", series{1, 20, 3}, series{2, 40, 6})
	if r.Ratio != 0.5 || r.Low != 0.5 || r.High != 0.5 || r.Value != 3 || r.Measured != 6 || r.Repeats != 3 {
		t.Errorf("%+v", r)
	}
	if !r.atMost("", 1, 1).Target.Met || r.atMost("", 1.1, 1).Target.Met || !r.atLeast("", 1, 1).Target.Met || r.atLeast("", 0.9, 1).Target.Met {
		t.Error("a target is not held to its limit")
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123", 0.01234: "0.0123", 0: "0.0000"} {
		if got := figure(v); got != want {
			t.Errorf("figure(%v) = %s, want %s", v, got, want)
		}
	}
}
