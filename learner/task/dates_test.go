package task

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestPartsOfDates: parts are read as the date is written, whatever its zone; what is no date makes the row invalid,
// and the hour of a date without a time is missing.
func TestPartsOfDates(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0", `features.columns=[
		{column: y1, field: at, part: year, kind: numeric, scale: raw, max: 9999},
		{column: m1, field: at, part: month, kind: numeric, scale: raw, max: 12},
		{column: d1, field: at, part: day, kind: numeric, scale: raw, max: 31},
		{column: w1, field: at, part: weekday, kind: numeric, scale: raw, max: 7},
		{column: h1, field: at, part: hour, kind: numeric, scale: raw, max: 24, missing: {fill: 5, tokens: ["?"]}},
		{column: late, field: at, part: hour, kind: bucketed, edges: [12.5]}]`))
	for text, want := range map[string][]float64{
		"2024-02-29": {2024, 2, 29, 4, 5, 0, 0}, "2000-01-01T12:30": {2000, 1, 1, 6, 12.5, 0, 1},
		"1999-12-31 23:45:10": {1999, 12, 31, 5, 23.75, 0, 1}, "2024-06-09T00:00:00Z": {2024, 6, 9, 7, 0, 1, 0},
		"2024-06-10T09:15:60.123456789+05:30": {2024, 6, 10, 1, 9.25, 1, 0},
		"2024-06-10 09:15-0800":               {2024, 6, 10, 1, 9.25, 1, 0},
		"":                                    {4999.5, 6, 15.5, 3.5, 5, 0, 0},
	} {
		x := make([]float64, m.Dim())
		mapped(t, m, Row{Fields: []string{text}, Label: "1"}).AddTo(x, 1)
		for j := range want {
			if math.Abs(x[j]-want[j]) > 1e-12 {
				t.Errorf("%q: %v, want %v", text, x, want)
				break
			}
		}
	}
	for _, text := range []string{"2023-02-29", "2024-13-01", "2024-00-10", "2024-1-1", "24-01-01", "2024-01-01T",
		"2024-01-01T1:00",
		"2024-01-01T24:00", "2024-01-01T10:60", "2024-01-01T10:00:61", "2024-01-01T10:00:00.", "2024-01-01T10:00x",
		"2024-01-01T10:00Z1", "2024-01-01T10", "01/02/2024", "2024-01-01  10:00", "1704103200", "x",
		"2024-01-01T10:00+24:00"} {
		if m.Map(Row{Fields: []string{text}, Label: "1"}, new(convex.Example)) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if c := m.Coordinates()[4]; c.Name != "h1" || c.Column != "at" || c.Part != Hour {
		t.Errorf("%+v", c)
	}
	if got := m.Schema(); !slices.Equal(got.Columns, []string{"at"}) || got.Kinds[0] != "" {
		t.Errorf("%+v", got)
	}
	mapped(t, m, Row{Fields: m.Decoy().Fields, Label: "1"})
}
