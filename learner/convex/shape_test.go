package convex_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestEveryLossHasItsShape: a practical plan asks every loss for its shape, and takes none for another one. At scores of
// 0 the gradient of a row of norm 1 is as long as the shape says.
func TestEveryLossHasItsShape(t *testing.T) {
	positive := func(of labelled, what string, x float64) {
		if !(x > 0) || math.IsInf(x, 0) {
			t.Errorf("%+v: %s: %v, want a finite number above 0", of.Declaration, what, x)
		}
	}
	for _, of := range declared {
		traits := convex.TraitsOf(of.Name)
		if !traits.Labels.Classes() {
			s := of.FitShape(convex.Residuals{Center: 2, Deviation: 3, Left: 0.5})
			for what, x := range map[string]float64{"gain": s.Gain, "unit": s.Unit, "clip": s.Clip, "curvature": s.Curvature,
				"step": s.Step, "slope": s.Slope, "start": s.Start} {
				positive(of, what, x)
			}
			if !traits.Smooth != (s.Smoothing > 0) {
				t.Errorf("%s: smoothing %v", of.Name, s.Smoothing)
			}
			continue
		}
		s := of.ClassShape()
		k := float64(max(2, of.Classes))
		shares := make([]float64, int(k))
		for i := range shares {
			shares[i] = 1 / k
		}
		for what, x := range map[string]float64{"slope": s.Slope, "curvature": s.Bend(shares), "noise": s.Noise,
			"length": s.Length(1/k, 1/k), "square": s.Square(1/k, 1/k), "planned": s.Stream.Planned,
			"curvature of a stream": s.Stream.Curvature, "slope of a stream": s.Stream.Slope, "spread": s.Stream.Spread,
			"trust": s.Stream.Trust} {
			positive(of, what, x)
		}
		if smooths := traits.Rounded || !traits.Smooth; s.Smoothing > 0 && !smooths || s.Smoothing == 0 && !traits.Smooth {
			t.Errorf("%+v: smoothing %v", of.Declaration, s.Smoothing)
		}
		plain := of.Declaration
		plain.ClassWeights = nil
		zero := make([]float64, int(k))
		g := convex.Norm(gradient(given(plain), zero[:given(plain).Parameters(1)], convex.Example{Value: []float64{1},
			Label: of.labels[0]}))
		if of.LabelNoise > 0 { // slopes are of labels as they would be without it
			continue
		}
		if math.Abs(g-s.Slope) > 1e-12 {
			t.Errorf("%+v: slope %v at scores of 0, want %v", of.Declaration, s.Slope, g)
		}
		if math.Abs(s.Length(1/k, 1/k)*s.Length(1/k, 1/k)-s.Square(1/k, 1/k)) > 1e-12 {
			t.Errorf("%+v: length %v of a square of %v", of.Declaration, s.Length(1/k, 1/k), s.Square(1/k, 1/k))
		}
	}
}
