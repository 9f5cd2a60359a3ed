package isrl

import (
	"fmt"
	"math"
)

// A Federation holds the quantities that the theorems' constants depend on. Counts are floats because
// formulas are made of them; all are at least 1.
type Federation struct {
	Silos     float64 // N
	Available float64 // M of a round: 1/M is the mean of 1/M_r over rounds
	Records   float64 // n of each silo
	Dim       float64 // d

	Lipschitz  float64 // L: no record's gradient is longer. The unit of gradients
	Smoothness float64 // beta of every record's loss; +Inf: not smooth
	Convexity  float64 // mu, of the strong convexity of every record's loss; 0: convex
	Diameter   float64 // D of the set, in the unit of the weights

	// phi: within a silo, the mean of the squared distance of a record's gradient from the mean is at most phi^2
	Deviation float64
	Spread    float64 // upsilon: the same of silos' gradients from that of all, see Heterogeneous
	Gap       float64 // Delta: objective at the start less the least. Of strongly convex losses alone

	Epsilon, Delta float64
}

// Validate names the first field that no theorem can do with.
func (f Federation) Validate() error {
	for _, c := range [...]struct {
		name  string
		value float64
		least float64
	}{{"silos", f.Silos, 1}, {"available silos", f.Available, 1}, {"records", f.Records, 1}, {"dim", f.Dim, 1}} {
		if !(c.value >= c.least) || math.IsInf(c.value, 0) {
			return fmt.Errorf("%s: %v, want a finite number of at least %v", c.name, c.value, c.least)
		}
	}
	for _, c := range [...]struct {
		name     string
		value    float64
		positive bool
	}{{"lipschitz", f.Lipschitz, true}, {"diameter", f.Diameter, true}, {"epsilon", f.Epsilon, true},
		{"convexity", f.Convexity, false}, {"deviation", f.Deviation, false}, {"spread", f.Spread, false},
		{"gap", f.Gap, false}} {
		if !(c.value >= 0) || math.IsInf(c.value, 0) || c.positive && c.value == 0 {
			return fmt.Errorf("%s: %v, want a finite number that is not negative, or 0 where it may be", c.name, c.value)
		}
	}
	switch {
	case f.Available > f.Silos:
		return fmt.Errorf("available silos: %v, want at most the silos (%v)", f.Available, f.Silos)
	case !(f.Smoothness > 0):
		return fmt.Errorf("smoothness: %v, want a number above 0, or +Inf", f.Smoothness)
	case !(f.Delta > 0 && f.Delta < 1):
		return fmt.Errorf("delta: %v, want a number strictly between 0 and 1", f.Delta)
	}
	return nil
}

// logDelta returns ln(1/delta), the logarithm that the rates display.
func (f Federation) logDelta() float64 { return math.Log(1 / f.Delta) }

// condition returns kappa = beta/mu.
func (f Federation) condition() float64 { return f.Smoothness / f.Convexity }

// heterogeneous returns the share of upsilon^2/M that the M of N silos of a round leave: (N-M)/(N-1), 0 where
// all answer, and for one silo.
func (f Federation) heterogeneous() float64 {
	if f.Silos <= 1 {
		return 0
	}
	return (f.Silos - f.Available) / (f.Silos - 1)
}

// A condition is a premise of a theorem: that Value is at least Least, or at most Most.
type condition struct {
	Text  string  `json:"condition"`
	Value float64 `json:"value"`
	Bound float64 `json:"bound"`
	Met   bool    `json:"met"`
}

func atMost(text string, value, bound float64) condition {
	return condition{Text: text, Value: value, Bound: bound, Met: value <= bound}
}

func atLeast(text string, value, bound float64) condition {
	return condition{Text: text, Value: value, Bound: bound, Met: value >= bound}
}
