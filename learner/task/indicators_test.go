package task

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestIndicatorsAreZeroOrOne: a coordinate that is declared an indicator is 0 or 1 in every event, wherever its
// numbers lie.
func TestIndicatorsAreZeroOrOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		if v := s.Features.Vector; v != nil {
			v.MaxNonzeros, s.NormBound = v.Dimension, 0
		}
		m := mustCompile(t, s)
		row := drawRow(t, s, rapid.Bool().Draw(t, "inside"))
		var e convex.Example
		if err := m.Map(row, &e); err != nil {
			t.Fatal(err)
		}
		x := make([]float64, m.Dim())
		e.AddTo(x, 1)
		if !slices.Contains(m.indicators(), true) {
			t.SkipNow()
		}
		for j, yes := range m.indicators() {
			if yes && x[j] != 0 && x[j] != 1 {
				t.Fatalf("%s is %v", m.Names()[j], x[j])
			}
		}
	})
}

func TestIndicatorsByKind(t *testing.T) {
	const columns = `features={columns: [{column: age, kind: numeric, min: 0, max: 1, scale: raw}, {column: old, kind: indicator},
		{column: new, kind: indicator}, {column: job, kind: categorical, vocabulary: [a], unknown: other}, {column: age, kind: bucketed, edges: [1]}],
		crosses: [{columns: [job, age], buckets: 2}], polynomial: {columns: [age, old, new], degree: 2}, fourier: {columns: [old], dimension: 1, gamma: 1}}`
	// age, old, new, job, job, age, age, crosses; age*age, age*old, age*new, old*old, old*new, new*new; fourier
	kinds := []bool{false, true, true, true, true, true, true, true, true, false, false, false, true, true, true, false}
	for _, c := range []struct {
		sets []string
		want []bool
	}{
		{[]string{columns}, kinds},
		{[]string{columns, "norm_bound=1.5"}, make([]bool, len(kinds))},
	} {
		if got := mustCompile(t, mustParse(t, regression, c.sets...)).indicators(); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.sets[1:], got, c.want)
		}
	}
	vector := "features.vector={dimension: 2, kind: indicator}"
	for _, c := range []struct {
		file string
		sets []string
		want []bool
	}{
		{scaled, nil, []bool{false, false}},
		{scaled, []string{vector}, []bool{true, false}}, // scales 1 and 0.5
	} {
		if got := mustCompile(t, mustParse(t, c.file, c.sets...)).indicators(); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.sets, got, c.want)
		}
	}
}

// TestIndicatorIsTheNearerOne: a value that is neither 0 nor 1 is the nearer one.
func TestIndicatorIsTheNearerOne(t *testing.T) {
	m := mustCompile(t, mustParse(t, sparse, "features.vector={dimension: 10, kind: indicator}", "intercept=0"))
	var e convex.Example
	if err := m.Map(Row{Index: []int32{0, 2, 4, 6, 8}, Value: []float64{1, 0.5, 0.499, -7, 30}, Label: "1"},
		&e); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Index, []int32{0, 2, 8}) || !slices.Equal(e.Value, []float64{1, 1, 1}) {
		t.Errorf("index %v, values %v", e.Index, e.Value)
	}
}
