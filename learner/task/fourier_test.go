package task

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestFourierNumbers: the numbers are part of the task. These were computed from their definition in another
// language.
func TestFourierNumbers(t *testing.T) {
	for _, c := range []struct {
		seed, i, n int
		gamma      float64
		w          []float64
		b          float64
	}{
		{0, 0, 1, 0.5, []float64{-0.0901120869785036}, 4.885376490299262},
		{7, 3, 3, 2, []float64{-2.94371064153189, 2.421620446815649, 1.4933230723861939}, 2.696532743584916},
	} {
		m := newFourierMap(&Fourier{Dimension: c.i + 1, Gamma: c.gamma, Seed: c.seed}, c.n)
		for j, want := range c.w {
			if got := m.frequencies[c.i*c.n+j]; math.Abs(got-want) > 1e-12 {
				t.Errorf("seed %d: w_%d[%d] = %v, want %v", c.seed, c.i, j, got, want)
			}
		}
		if got := m.phases[c.i]; math.Abs(got-c.b) > 1e-12 {
			t.Errorf("seed %d: b_%d = %v, want %v", c.seed, c.i, got, c.b)
		}
	}
}

// TestFourierKernel: inner products of many features approach the Gaussian kernel. The seed is fixed; the mean
// of 4096 products in [-2, 2] has a standard deviation of at most 2/sqrt(4096) = 0.03.
func TestFourierKernel(t *testing.T) {
	const gamma, dimension = 0.7, 4096
	m := mustCompile(t, mustParse(t, regression, "intercept=0",
		"features.columns=[{column: x, kind: numeric, min: -1, max: 1, hidden: true}]",
		"features.fourier={columns: [x], dimension: 4096, gamma: 0.7, seed: 3}"))
	if m.Dim() != dimension || m.Bound() > math.Sqrt2+1e-9 {
		t.Fatalf("d = %d, bound %v", m.Dim(), m.Bound())
	}
	at := func(x string) []float64 {
		var e convex.Example
		if err := m.Map(Row{Fields: []string{x}, Label: "0"}, &e); err != nil {
			t.Fatal(err)
		}
		return e.Value
	}
	a := at("-0.9")
	for x, field := range map[float64]string{-0.9: "-0.9", -0.5: "-0.5", 0: "0", 1: "1"} {
		var got float64
		for i, v := range at(field) {
			got += v * a[i]
		}
		want := math.Exp(-gamma * (x + 0.9) * (x + 0.9))
		if math.Abs(got-want) > 0.1 {
			t.Errorf("kernel of -0.9 and %v: %v, want %v", x, got, want)
		}
	}
}
