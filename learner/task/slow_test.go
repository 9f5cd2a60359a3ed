package task

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestNoTextTakesLong: a number or date that would take long to read makes the row invalid, of every kind, and the
// label's number too; one that is as long as may be is read.
func TestNoTextTakesLong(t *testing.T) {
	number, date := "0."+strings.Repeat("3", longestNumber-2), slowestDate
	for _, c := range []struct{ column, text string }{
		{"{column: x, kind: numeric, max: 1}", number}, {"{column: x, kind: indicator}", number},
		{"{column: x, kind: numeric, scale: log, unit: 1, std: 1, clip: 3}", number},
		{"{column: x, kind: bucketed, edges: [1]}", number}, {"{column: x, kind: hats, knots: [0, 1]}", number},
		{"{column: g, kind: onehot-group, columns: [x, z]}", number},
		{"{column: h, field: x, part: hour, kind: numeric, max: 24}", date[:len(date)-6]},
	} {
		m := mustCompile(t, mustParse(t, regression, "features.columns=["+c.column+"]"))
		row := func(text string) Row { return Row{Fields: []string{text, "0"}[:len(m.Schema().Columns)], Label: "1"} }
		mapped(t, m, row(c.text))
		if m.Map(row(c.text+strings.Repeat("3", 1<<16)), new(convex.Example)) == nil {
			t.Errorf("%s: reads a text of 64 KiB", c.column)
		}
	}
	m := mustCompile(t, mustParse(t, regression))
	mapped(t, m, Row{Fields: []string{"1"}, Label: number})
	if m.Map(Row{Fields: []string{"1"}, Label: number + strings.Repeat("3", 1<<16)}, new(convex.Example)) == nil {
		t.Error("reads a label of 64 KiB")
	}
}

// TestDecoysTakeLongest: a decoy has the longest word that is hashed, the longest date, and a label with all its marks.
func TestDecoysTakeLongest(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, `features.columns=[{column: x, kind: hashed, buckets: 8},
		{column: h, field: at, part: hour, kind: hats, knots: [0, 24]}]`, "label.marks=[$]"))
	if f := m.Decoy().Fields; len(f[0]) != DefaultMaxLine || len(f[1]) != longestDate {
		t.Errorf("%d and %d bytes, want %d and %d", len(f[0]), len(f[1]), DefaultMaxLine, longestDate)
	}
	if label := m.Decoy().Label; len(label) != longestNumber {
		t.Errorf("a label of %d bytes, want %d", len(label), longestNumber)
	}
	shared := mustCompile(t, mustParse(t, regression, `features.columns=[
		{column: x, kind: numeric, max: 1, marks: [$, kg]}, {column: x, kind: bucketed, edges: [1], marks: [kg]},
		{column: r, field: x, over: z, kind: hats, knots: [0, 1], marks: [m, kg]}]`))
	f := shared.Decoy().Fields
	mapped(t, shared, shared.Decoy())
	if strings.Trim(f[0], "kg") != "1" || len(f[0]) < longestNumber-1 || strings.Trim(f[1], "mkg") != "1" {
		t.Errorf("%q and %q: want 1 with the marks that all columns of a field leave out", f[0], f[1])
	}
	for _, file := range samples {
		m := mustCompile(t, mustParse(t, file))
		mapped(t, m, m.Decoy())
	}
}

// TestNoSubnormalCoordinates: no coordinate, and nothing that a public model computes with, is so small that products
// of it take a processor longer than others.
func TestNoSubnormalCoordinates(t *testing.T) {
	p := &PublicModel{Version: 1, Sample: PublicSample{Rows: 1}, Inputs: []string{"x", "v"},
		Blocks: []PublicBlock{{Name: "z",
			Outputs: 1, Range: 1, Weights: NewMatrix([][]float64{{1, 1}}, 8)}}}
	public, err := NewPublic(p)
	if err != nil {
		t.Fatal(err)
	}
	s := mustParse(t, regression, `features={columns: [{column: x, kind: numeric, scale: raw, min: -1, max: 1},
		{column: v, kind: numeric, scale: unit, max: 1e90}], polynomial: {columns: [x, v], degree: 2},
		public: "`+public.hash+`"}`)
	if s, err = s.WithPublic(public.data); err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, s)
	for _, text := range []string{"5e-324", "-2e-308", "1e-300", "1e-160"} {
		for j, v := range mapped(t, m, Row{Fields: []string{text, text}, Label: "1"}).Value {
			if v != convex.Normal(v) {
				t.Errorf("%s: coordinate %d is %g", text, j, v)
			}
		}
	}
	var e convex.Example
	v := mustCompile(t, mustParse(t, sparse, "features.vector={dimension: 2, min: 0, max: 1}"))
	if err := v.Map(Row{Index: []int32{0, 1}, Value: []float64{math.SmallestNonzeroFloat64, 1}, Label: "1"},
		&e); err != nil {
		t.Fatal(err)
	}
	for j, x := range e.Value {
		if x != convex.Normal(x) {
			t.Errorf("value %d of a vector is %g", j, x)
		}
	}
}
