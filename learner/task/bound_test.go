package task

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

func mapped(t testing.TB, m *FeatureMap, row Row) convex.Example {
	t.Helper()
	var e convex.Example
	if err := m.Map(row, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBoundIsAttained: the bound is as small as can be: an event attains it, and is not scaled down.
func TestBoundIsAttained(t *testing.T) {
	s := mustParse(t, derived)
	s.Features.Fourier = nil
	for _, c := range []struct {
		name    string
		spec    *Spec
		squared float64
		row     Row
	}{
		// age, a bucket, a job, two crosses, the intercept, and the products of 1 and 3.
		{"columns", s, 6 + 1 + 9 + 81, Row{Fields: []string{"100", "6000", "a", "u"}, Label: "1"}},
		{"scales", mustParse(t, scaled), 1 + 0.25 + 1, Row{Index: []int32{0, 1}, Value: []float64{1, 1}, Label: "1"}},
		{"one value", mustParse(t, scaled, "features.vector.max_nonzeros=1"), 1 + 1, Row{Index: []int32{0},
			Value: []float64{1}, Label: "1"}},
		{"an indicator of each group", mustParse(t, plain, "intercept=0", "features.scales=[2, 3, 4, 1, 1, 5, 1]"),
			4 + 16 + 25,
			Row{Fields: []string{"0", "b", "http://a"}, Label: "1"}},
		{"second moments", mustParse(t, sparse, "intercept=0", "features.vector={dimension: 2, min: 0, max: 1}",
			"features.precondition={second_moments: [0.21, 0.03], damping: 0.04}"), 1/0.25 + 1/0.07,
			Row{Index: []int32{0, 1}, Value: []float64{1, 1}, Label: "1"}},
	} {
		m := mustCompile(t, c.spec)
		if got := m.Bound() * m.Bound(); math.Abs(got-c.squared) > 1e-12*c.squared {
			t.Errorf("%s: X^2 = %v, want %v", c.name, got, c.squared)
		}
		if got := mapped(t, m, c.row).Norm(); math.Abs(got-m.Bound()) > 1e-12*got {
			t.Errorf("%s: norm %v, the bound is %v", c.name, got, m.Bound())
		}
	}
}

// TestNothingIsScaledDown: events within the declared bounds are never scaled down: what declaredBound computes
// is a bound.
func TestNothingIsScaledDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.NormBound = 0
		m := mustCompile(t, s)
		row := drawRow(t, s, true)
		squares := s.Intercept * s.Intercept
		for j, x := range bases(t, m, row) {
			v := m.coordinate[j].Factor*x + m.coordinate[j].Offset
			squares += v * v
		}
		if norm := math.Sqrt(squares); norm > m.Bound()*(1+1e-9) {
			t.Fatalf("norm %v before clipping, the bound is %v", norm, m.Bound())
		}
	})
}

// TestBoundIsFinite: a bound whose square overflows is refused.
func TestBoundIsFinite(t *testing.T) {
	_, err := Parse([]byte(derived),
		[]string{"features.columns.0={column: age, kind: numeric, min: -1e100, max: 1e100, scale: raw}",
			"features.polynomial={columns: [age], degree: 3}"})
	if err == nil {
		t.Error("accepted products of 1e300")
	}
}

// TestMapDoesNotAllocate: Map allocates nothing once its memory has grown, whatever it computes.
func TestMapDoesNotAllocate(t *testing.T) {
	idx := mustCompile(t, mustParse(t, scaled, "events.format=idx",
		"features={vector: {dimension: 2, min: 0, max: 1, hidden: true}, fourier: {dimension: 5, gamma: 1}}"))
	for _, c := range []struct {
		name string
		m    *FeatureMap
		row  Row
	}{
		{"columns", mustCompile(t, mustParse(t, derived)), Row{Fields: []string{"100", "6000", " a", "u"}, Label: "1"}},
		{"indicators", mustCompile(t, mustParse(t, plain)), Row{Fields: []string{"7", "a", "u"}, Label: "1"}},
		{"dense columns", mustCompile(t, mustParse(t, regression)), Row{Fields: []string{"0.5"}, Label: "1"}},
		{"vector", mustCompile(t, mustParse(t, scaled)), Row{Index: []int32{1}, Value: []float64{1}, Label: "1"}},
		{"every kind", mustCompile(t, mustParse(t, gaps)), Row{Fields: []string{"30", "a", "1", "0", "5", "Two words",
			"2024-05-06T07:08:09", "700"}, Label: "1"}},
		{"hidden vector", idx, Row{Value: []float64{1, 0.5}, Label: "1"}},
	} {
		var e convex.Example
		var failed error
		if n := testing.AllocsPerRun(100, func() { failed = c.m.Map(c.row, &e) }); n != 0 || failed != nil {
			t.Errorf("%s: %v allocations a row, %v", c.name, n, failed)
		}
	}
}

// TestMapReusesMemory: memory that served one task serves another.
func TestMapReusesMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e convex.Example
		for range 3 {
			s := drawSpec(t)
			m := mustCompile(t, s)
			row := drawRow(t, s, true)
			var fresh convex.Example
			if m.Map(row, &fresh) != nil || m.Map(row, &e) != nil {
				t.Fatal("a good row is refused")
			}
			a, b := make([]float64, m.Dim()), make([]float64, m.Dim())
			fresh.AddTo(a, 1)
			e.AddTo(b, 1)
			for j := range a {
				if math.Float64bits(a[j]) != math.Float64bits(b[j]) || (fresh.Index == nil) != (e.Index == nil) ||
					fresh.Label != e.Label {
					t.Fatalf("coordinate %d: %v in fresh memory, %v in used", j, a[j], b[j])
				}
			}
		}
	})
}
