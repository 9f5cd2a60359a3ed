package convex_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64(), 0, 6).Draw(t, "x")
		l := rapid.Float64Range(0, math.MaxFloat64).Draw(t, "l")
		before := append([]float64(nil), x...)
		n := convex.Norm(before)
		changed := convex.Clip(x, l)
		if convex.Norm(x) > l {
			t.Fatalf("norm %v after clipping to %v", convex.Norm(x), l)
		}
		if changed == (n <= l) {
			t.Fatalf("changed = %v for norm %v and bound %v", changed, n, l)
		}
		for i := range x {
			if !changed && x[i] != before[i] {
				t.Fatalf("entry %d moved from %v to %v inside the ball", i, before[i], x[i])
			}
			if want := before[i] / n * l; changed && l > 1e-290 && l < 1e290 && n < 1e290 && math.Abs(x[i]-want) > 1e-14*l {
				t.Fatalf("entry %d is %v, want %v: the direction changed", i, x[i], want)
			}
		}
	})
}

func TestClipOfWhatDoesNotExistIsZero(t *testing.T) {
	for _, x := range [][]float64{{1, math.NaN()}, {math.Inf(1), 1}, {math.Inf(-1), math.Inf(1)}} {
		for _, l := range []float64{1, math.Inf(1)} {
			v := append([]float64(nil), x...)
			if !convex.Clip(v, l) || convex.Norm(v) != 0 {
				t.Errorf("Clip(%v, %v) left %v", x, l, v)
			}
		}
	}
	for _, l := range []float64{-1, math.NaN()} {
		v := []float64{1}
		if !convex.Clip(v, l) || v[0] != 0 {
			t.Errorf("bound %v left %v", l, v)
		}
	}
	if v := []float64{1, 2}; !convex.Clip(v, 5e-324) || convex.Norm(v) > 5e-324 {
		t.Errorf("subnormal bound left %v", v)
	}
}

func TestNormAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{3, -4}, 5},
		{[]float64{3e200, 4e200}, 5e200}, {[]float64{3e-200, 4e-200}, 5e-200},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.Inf(1)}, {[]float64{math.Inf(-1), 1}, math.Inf(1)},
	} {
		if got := convex.Norm(c.x); got != c.want && math.Abs(got/c.want-1) > 1e-15 {
			t.Errorf("Norm(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if !math.IsNaN(convex.Norm([]float64{math.NaN(), math.Inf(1)})) {
		t.Error("a NaN entry must give NaN")
	}
}
