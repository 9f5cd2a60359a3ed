package task

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestMarks: marks are left out wherever they are, blanks around the rest too; what is then no number is none, and what
// is then nothing is missing.
func TestMarks(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0",
		`features.columns=[{column: x, kind: numeric, scale: raw, min: -1e6, max: 1e6, marks: [$, ",", "%", " kg"], missing: {fill: 7, tokens: ["$-"]}}]`,
		"label={column: y, min: 0, max: 2000, marks: [EUR, ' ']}"))
	for text, want := range map[string]float64{
		"$12.00": 12, "1,234.56": 1234.56, "45%": 45, " $ 1,000 kg ": 1000, "-$3": -3, "$-3e2": -300, "8": 8, "": 7, "$": 7,
		strings.Repeat("$", 127) + "1": 1, " $% ": 7, "$-": 7, "$nan": 7,
	} {
		if got := mapped(t, m, Row{Fields: []string{text}, Label: "1"}).Value[0]; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("$", 128) + "1", "£12", "12 lb", "1 2", "$inf"} {
		if m.Map(Row{Fields: []string{text}, Label: "1"}, new(convex.Example)) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if e := mapped(t, m, Row{Fields: []string{"1"}, Label: "EUR 1 500"}); math.Abs(e.Label-0.5) > 1e-12 {
		t.Errorf("label %v", e.Label)
	}
	if m.Map(Row{Fields: []string{"1"}, Label: "EUR"}, new(convex.Example)) == nil {
		t.Error("a label of marks is accepted")
	}
	if schema := m.Schema(); schema.Kinds[0] != "" || !schema.Class {
		t.Errorf("readers are asked for numbers: %+v", schema)
	}
	if e := mapped(t, m, Row{Fields: m.Decoy().Fields, Label: "1"}); e.Value[0] != 1 {
		t.Errorf("a decoy is %v", e.Value)
	}
}
