package task

import (
	"math"
	"strconv"
	"testing"
)

// TestLogOfColumns: a number of scale log is the logarithm of its magnitude in units, with its sign, standardised and
// cut; a missing one is at the mean.
func TestLogOfColumns(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0",
		"features.columns=[{column: x, kind: numeric, scale: log, unit: 5, mean: 1, std: 2, clip: 2}]"))
	e := math.E
	for text, want := range map[string]float64{
		"0": -0.5, "": 0, "1e300": 2, "-1e300": -2, "-1.7e308": -2,
	} {
		if got := mapped(t, m, Row{Fields: []string{text}, Label: "1"}).Value[0]; math.Abs(got-want) > 1e-6 {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for x, want := range map[float64]float64{5 * (e - 1): 0, -5 * (e - 1): -1, 5 * (e*e*e - 1): 1} {
		text := strconv.FormatFloat(x, 'g', -1, 64)
		if got := mapped(t, m, Row{Fields: []string{text}, Label: "1"}).Value[0]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
	if m.Bound() != 2 {
		t.Errorf("bound %v, want the clip", m.Bound())
	}
	weights, intercept, err := m.Undo([]float64{3}) // 3 (log - 1)/2, of a label in [0, 10] from [-1, 1]
	if c := m.Coordinates()[0]; err != nil || weights[0] != 7.5 || intercept != -2.5 || c.Unit != 5 || c.Min != -3 ||
		c.Max != 5 {
		t.Errorf("weights %v and %v of %+v, %v", weights, intercept, c, err)
	}
	var i Inspection
	for text, clamped := range map[string]bool{"700": false, "800": true, "-95": false, "-96": true} {
		if m.Inspect(Row{Fields: []string{text}, Label: "1"}, &i); i.Columns[0].Clamped != clamped {
			t.Errorf("%s: moved %v, want %v", text, i.Columns[0].Clamped, clamped)
		}
	}
}

// TestFromLogInverts: there and back is the same number, and what would be too large is the largest.
func TestFromLogInverts(t *testing.T) {
	for _, unit := range []float64{1e-100, 0.5, 1, 1e100} {
		for _, x := range []float64{0, 1e-300, 1e-3, 1, 7e9, 1e300, math.MaxFloat64} {
			if ratio := x / unit; ratio > 1e300 || x > 0 && ratio < 1e-300 {
				continue
			}
			if back := FromLog(toLog(-x, unit), unit); math.Abs(back+x) > 1e-12*x+1e-310 {
				t.Errorf("-%v in units of %v is %v after a round", x, unit, back)
			}
		}
		if got := FromLog(2000, unit); got != math.MaxFloat64 {
			t.Errorf("of 2000: %v", got)
		}
	}
}

// TestLogOfLabels: the loss sees the logarithm of a label, between those of its bounds; predictions are in its units,
// within the bounds, and weights are of the logarithm.
func TestLogOfLabels(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "label={column: y, min: -10, max: 1000, scale: log, unit: 10}"))
	low, high := -math.Log(2), math.Log(101)
	for y, want := range map[float64]float64{-10: -1, -20: -1, 1000: 1, 5000: 1, 0: -1 - 2*low/(high-low),
		90: -1 + 2*(math.Log(10)-low)/(high-low)} {
		e := mapped(t, m, Row{Fields: []string{"1"}, Label: strconv.FormatFloat(y, 'g', -1, 64)})
		if math.Abs(e.Label-want) > 1e-12 {
			t.Errorf("%v: the loss sees %v, want %v", y, e.Label, want)
		}
		inside := min(max(y, -10), 1000)
		if got := m.Target(e.Label); math.Abs(got-inside) > 1e-9 {
			t.Errorf("%v: the target is %v", y, got)
		}
		if got := decide(m, e.Label); math.Abs(got-inside) > 1e-9 || got < -10 || got > 1000 {
			t.Errorf("%v: predicted as %v", y, got)
		}
	}
	for score, want := range map[float64]float64{-9: -10, 9: 1000, 1e6: 1000} {
		if got := decide(m, score); got != want {
			t.Errorf("a score of %v predicts %v, want %v", score, got, want)
		}
	}
	if got := m.Labels(); got[0] != -1 || got[1] != 1 {
		t.Errorf("labels from %v to %v", got[0], got[1])
	}
	weights, intercept, err := m.Undo([]float64{1, 0.5}) // 2x - 1 + 0.5, half the range of the logarithm each
	half := (high - low) / 2
	if err != nil || math.Abs(weights[0]-2*half) > 1e-12 || math.Abs(intercept-(low+half/2)) > 1e-12 {
		t.Errorf("weights %v, %v, %v", weights, intercept, err)
	}
	var i Inspection
	for text, clamped := range map[string]bool{"1000": false, "1001": true, "-10": false, "-10.1": true} {
		if m.Inspect(Row{Fields: []string{"1"}, Label: text}, &i); i.Label.Clamped != clamped {
			t.Errorf("label %s: moved %v, want %v", text, i.Label.Clamped, clamped)
		}
	}
}
