package task

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestMissing: the value that a missing one becomes, by kind and declaration.
func TestMissing(t *testing.T) {
	const columns = `features.columns=[{column: age, kind: numeric, min: 0, max: 100}, {column: pay, kind: numeric, scale: standard, mean: 3, std: 2,
		missing: {tokens: [-999, "?"], fill: 1, indicator: true}}, {column: old, kind: indicator, missing: {fill: 1}},
		{column: age, kind: bucketed, edges: [50]}, {column: job, kind: categorical, vocabulary: [a, b]},
		{column: town, kind: categorical, vocabulary: [a], unknown: other, missing: {tokens: [NA]}},
		{column: land, kind: categorical, vocabulary: [a, b], missing: {tokens: ["?"], word: b}}]`
	m := mustCompile(t, mustParse(t, regression, columns, "intercept=0"))
	for _, c := range []struct {
		name   string
		fields []string // age, pay, old, job, town, land
		want   []float64
	}{
		{"all there", []string{"75", "5", "0", "a", "a", "a"}, []float64{0.5, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0}},
		{"all blank", []string{"", " ", "", "", "", ""}, []float64{0, -1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1}},
		{"all said", []string{"nan", "?", "NaN", " ", "NA", "?"}, []float64{0, -1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1}},
		{"a number", []string{"25", " -999.0 ", "1", "b", "c", "b"}, []float64{-0.5, -1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1}},
	} {
		var e convex.Example
		if err := m.Map(Row{Fields: c.fields, Label: "1"}, &e); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		x := make([]float64, m.Dim())
		e.AddTo(x, 1)
		if !slices.Equal(x, c.want) {
			t.Errorf("%s: %v, want %v (%q)", c.name, x, c.want, m.Names())
		}
	}
	for _, fields := range [][]string{ // a token of one entry is none of another
		{"?", "5", "0", "a", "a", "a"}, {"1", "NA", "0", "a", "a", "a"}, {"1", "5", "0", "?", "a", "a"},
		{"1", "inf", "0", "a", "a", "a"},
	} {
		if err := m.Map(Row{Fields: fields, Label: "1"}, new(convex.Example)); err == nil {
			t.Errorf("%q is accepted", fields)
		}
	}
}

// TestBoundOfMissing: a number that may be missing adds the larger norm of the two cases, which is attained.
func TestBoundOfMissing(t *testing.T) {
	for fill, want := range map[string]float64{"1": 9, "3": 10, "-3": 10, "-2": 9} {
		m := mustCompile(t, mustParse(t, regression, "intercept=0",
			"features.columns=[{column: x, kind: numeric, scale: raw, min: -3, max: 3, missing: {indicator: true, fill: "+fill+
				"}}]"))
		var most float64
		for _, field := range []string{"", "3"} {
			most = max(most, mapped(t, m, Row{Fields: []string{field}, Label: "1"}).Norm())
		}
		if got := m.Bound() * m.Bound(); math.Abs(got-want) > 1e-12 || math.Abs(most*most-want) > 1e-12 {
			t.Errorf("fill %s: bound squared %v, reached %v, want %v", fill, got, most*most, want)
		}
	}
}

// TestMissingSpelled checks that a file with the defaults and a file without them declare the same task.
func TestMissingSpelled(t *testing.T) {
	canonical := func(missing string) string {
		b, err := mustParse(t, regression, "features.columns=[{column: x, kind: numeric, min: 0, max: 3"+missing+
			"}]").Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, missing := range []string{", missing: {}", ", missing: {tokens: []}", `, missing: {tokens: [""]}`,
		", missing: {fill: 1.5}", ", missing: {indicator: false}"} {
		if got, want := canonical(missing), canonical(""); got != want {
			t.Errorf("%s: %s, want %s", missing, got, want)
		}
	}
	if canonical(`, missing: {tokens: ["", "?"]}`) != canonical(`, missing: {tokens: ["?"]}`) {
		t.Error("a blank token is not left out")
	}
}
