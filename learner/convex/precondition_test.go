package convex_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func TestPreconditionerByHand(t *testing.T) {
	p := convex.Preconditioner{Dim: 3, Norm: 10, Damping: 0.25, Bound: 100}
	dense := convex.Example{Value: []float64{1, -2, 0.5, 7}, Label: 1} // the last is an intercept
	sparse := convex.Example{Index: []int32{1, 3}, Value: []float64{-2, 7}, Label: -1}
	squares := []float64{9, 9, 9}
	if p.Squares(squares, dense); !slices.Equal(squares, []float64{1, 4, 0.25}) {
		t.Errorf("squares of a dense example: %v", squares)
	}
	if p.Squares(squares, sparse); !slices.Equal(squares, []float64{0, 4, 0}) {
		t.Errorf("squares of a sparse example: %v", squares)
	}
	scales, err := p.Scales([]float64{3.5, -8, 0}, 0.25)
	if err != nil || !slices.Equal(scales, []float64{0.5, 1 / math.Sqrt(0.5), 1 / math.Sqrt(0.5)}) {
		t.Errorf("scales %v, %v", scales, err)
	}
	if err := p.CheckScales(scales); err != nil {
		t.Error(err)
	}
	var got convex.Example
	if p.Rescale(&got, sparse, []float64{3, 0.5, 3}); !slices.Equal(got.Value, []float64{-1, 7}) || got.Label != -1 || !slices.Equal(got.Index, sparse.Index) {
		t.Errorf("rescaled: %v %v", got.Index, got.Value)
	}
	p.Bound = 5
	if p.Rescale(&got, convex.Example{Value: []float64{6, 0, 0, 4}}, []float64{0.5, 1, 1}); !slices.Equal(got.Value, []float64{3, 0, 0, 4}) || got.Index != nil {
		t.Errorf("rescaled to norm 5: %v", got.Value)
	}
	if sparse.Value[0] != -2 {
		t.Error("the example itself was changed")
	}
}

func TestPreconditionerRefuses(t *testing.T) {
	good := convex.Preconditioner{Dim: 2, Norm: 1, Damping: 0.01, Bound: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]convex.Preconditioner{
		"dim": {Norm: 1, Damping: 1, Bound: 1}, "norm": {Dim: 1, Damping: 1, Bound: 1}, "damping": {Dim: 1, Norm: 1, Bound: 1},
		"bound": {Dim: 1, Norm: 1, Damping: 1},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %s", p, err, want)
		}
	}
	for _, moments := range [][]float64{{1}, {1, math.NaN()}, {1, math.Inf(1)}, {1, math.Inf(-1)}} {
		if _, err := good.Scales(moments, 0); err == nil {
			t.Errorf("moments %v: no error", moments)
		}
	}
	if _, err := good.Scales([]float64{1, 1}, math.Inf(1)); err == nil {
		t.Error("noise without bound: no error")
	}
	for _, scales := range [][]float64{nil, {1}, {1, 0}, {1, -1}, {1, 10.001}, {1, math.NaN()}, {1, math.Inf(1)}, {1, 1e-13}} {
		if good.CheckScales(scales) == nil {
			t.Errorf("scales %v: no error", scales)
		}
	}
}

// A rescaled example is within its norm, whatever the event is, and scales that come of moments pass the device's check.
func TestPreconditionerBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.Float64Range(-1e100, 1e100), rapid.Just(0.0))
		p := convex.Preconditioner{Dim: rapid.IntRange(1, 4).Draw(t, "dim"), Norm: rapid.Float64Range(1e-6, 1e6).Draw(t, "norm"),
			Damping: rapid.Float64Range(1e-12, 1e3).Draw(t, "damping"), Bound: rapid.Float64Range(1e-6, 1e6).Draw(t, "bound")}
		x := convex.Example{Value: rapid.SliceOfN(number, p.Dim+1, p.Dim+1).Draw(t, "x")}
		moments := rapid.SliceOfN(number, p.Dim, p.Dim).Draw(t, "moments")
		scales, err := p.Scales(moments, rapid.Float64Range(0, 1e9).Draw(t, "std"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckScales(scales); err != nil {
			t.Fatal(err)
		}
		var y convex.Example
		if p.Rescale(&y, x, scales); !(y.Norm() <= p.Bound) {
			t.Fatalf("rescaled to norm %v, want at most %v", y.Norm(), p.Bound)
		}
	})
}
