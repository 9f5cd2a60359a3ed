package task

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

const knots = `features.columns=[{column: x, kind: hats, knots: [0, 10, 50], missing: {tokens: ["?"]}},
	{column: x, kind: numeric, max: 50, missing: {tokens: ["?"]}}]`

// TestHats: the two hats around a number share 1 by how near their knots are; outside the knots the outer hat is 1;
// where the number is missing there is none.
func TestHats(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, knots, "intercept=0"))
	if want := []string{"x@0", "x@10", "x@50", "x"}; !slices.Equal(m.Names(), want) {
		t.Errorf("names %q, want %q", m.Names(), want)
	}
	if got := m.Bound(); math.Abs(got-math.Sqrt2) > 1e-12 {
		t.Errorf("bound %v, want that of one indicator and a number", got)
	}
	for field, want := range map[string][]float64{
		"-3": {1, 0, 0}, "0": {1, 0, 0}, "2.5": {0.75, 0.25, 0}, "10": {0, 1, 0}, "20": {0, 0.75, 0.25}, "50": {0, 0, 1},
		"1e300": {0, 0, 1}, "": {0, 0, 0}, "nan": {0, 0, 0}, "?": {0, 0, 0},
	} {
		x := make([]float64, m.Dim())
		mapped(t, m, Row{Fields: []string{field}, Label: "1"}).AddTo(x, 1)
		if !slices.Equal(x[:3], want) {
			t.Errorf("%q: %v, want %v", field, x[:3], want)
		}
	}
	for _, field := range []string{"x", "inf"} {
		if m.Map(Row{Fields: []string{field}, Label: "1"}, new(convex.Example)) == nil {
			t.Errorf("%q is accepted", field)
		}
	}
}

// TestHatsShareOne: whatever the knots and the number, however near to each other, hats lie in [0, 1], only neighbours
// are set, and a row is not scaled down.
func TestHatsShareOne(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(-1e100, 1e100), rapid.Float64Range(-1, 1), rapid.Float64Range(0, 1e-300))
	rapid.Check(t, func(t *rapid.T) {
		knots := rapid.SliceOfNDistinct(number, minKnots, maxKnots, rapid.ID).Draw(t, "knots")
		slices.Sort(knots)
		s := &Source{Kind: Hats, Knots: slices.CompactFunc(knots, func(a, b float64) bool { return a == b })} // 0 and -0
		if len(s.Knots) < minKnots {
			t.Skip("0 and -0")
		}
		x := rapid.OneOf(number, rapid.SampledFrom(s.Knots), rapid.Float64()).Draw(t, "x")
		place := s.place(x)
		w := writer{FeatureMap: &FeatureMap{}, index: []int32{}}
		w.setHats(s, 0, place)
		at, lower, upper := w.index[0], w.value[0], w.value[1]
		if w.index[1] != at+1 || int(w.index[1]) >= len(s.Knots) || lower < 0 || upper < 0 || lower+upper != 1 ||
			lower*lower+upper*upper > 1 {
			t.Fatalf("hats %v at %v", w.value, w.index)
		}
		for j := range s.Knots {
			want := max(0, 1-math.Abs(place-float64(j)))
			got := 0.0
			if k := slices.Index(w.index, int32(j)); k >= 0 {
				got = w.value[k]
			}
			if math.Abs(got-want) > 1e-16 {
				t.Fatalf("hat %d: %v, want %v", j, got, want)
			}
		}
	})
}
