package task

import (
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestRatios: a ratio is the quotient of doubles; it is missing where a field is, where the divisor is 0 and where the
// quotient overflows, and what is no number makes the row invalid, in whichever field it is.
func TestRatios(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, `features.columns=[
		{column: r, field: debt, over: income, kind: numeric, scale: raw, min: -9, max: 9, marks: [$],
			missing: {fill: 7, indicator: true, tokens: ["?", -1]}}]`))
	for _, c := range []struct {
		x, y          string
		want, missing float64
	}{
		{"1", "2", 0.5, 0}, {"$3", " $2 ", 1.5, 0}, {"1", "3", 1.0 / 3, 0}, {"100", "1", 9, 0}, {"0", "5", 0, 0},
		{"1", "0", 7, 1}, {"1", "-0", 7, 1}, {"0", "0", 7, 1}, {"", "2", 7, 1}, {"1", "", 7, 1}, {"1", "?", 7, 1},
		{"-1", "2", 7, 1}, {"4", "-1.0", 7, 1}, {"NaN", "2", 7, 1}, {"1e300", "1e-300", 7, 1},
	} {
		var e convex.Example
		if err := m.Map(Row{Fields: []string{c.x, c.y}, Label: "1"}, &e); err != nil {
			t.Errorf("%q over %q: %v", c.x, c.y, err)
			continue
		}
		if e.Value[0] != c.want || e.Value[1] != c.missing {
			t.Errorf("%q over %q: %v, want %v and %v", c.x, c.y, e.Value, c.want, c.missing)
		}
	}
	for _, fields := range [][]string{{"one", "2"}, {"1", "two"}, {"", "two"}, {"inf", "1"}, {"1", "inf"}} {
		if m.Map(Row{Fields: fields, Label: "1"}, new(convex.Example)) == nil {
			t.Errorf("%q: want an invalid row", fields)
		}
	}
	if c := m.Coordinates()[0]; c.Column != "debt" || c.Over != "income" || c.Name != "r" {
		t.Errorf("%+v", c)
	}
}
