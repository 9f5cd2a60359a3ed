package report_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
)

// TestSparseRowsSayTheSame: a row that lists its features gives the report of the same row in full, to the bit:
// of losses of one score, smoothed and weighted too, whose gradients are worked on where the row has features,
// and of others; and so does a row that is none of the task's.
func TestSparseRowsSayTheSame(t *testing.T) {
	const dim = 6
	weighted, err := convex.NewWeighted(convex.Logistic{}, []float64{0.5, 3})
	if err != nil {
		t.Fatal(err)
	}
	number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1e-200, 1e80, -1e160, math.NaN()}))
	rapid.Check(t, func(t *rapid.T) {
		loss := rapid.SampledFrom([]convex.Loss{convex.Logistic{}, weighted, convex.Softmax{Classes: 3}}).Draw(t, "loss")
		c := report.Config{Features: dim, Loss: loss, ClipNorm: 1, Radius: rapid.SampledFrom([]float64{0, 0.3}).Draw(t,
			"radius")}
		if _, ok := loss.(convex.Proximal); ok && rapid.Bool().Draw(t, "envelope") {
			if c, err = c.Phase(report.Gradient, 0.7); err != nil {
				t.Fatal(err)
			}
		}
		if rapid.Bool().Draw(t, "scores") {
			c.Scores, c.Score = 2, func(dst, point []float64, row convex.Example) {
				dst[0], dst[1] = c.Loss.Value(point, row),
					0.5
			}
		}
		point := rapid.SliceOfN(rapid.Float64Range(-2, 2), c.Loss.Parameters(dim), c.Loss.Parameters(dim)).Draw(t, "point")
		var few, whole []convex.Example
		for range 3 {
			x := convex.Example{Index: []int32{}, Label: rapid.SampledFrom([]float64{-1, 1, 1, 0, 2}).Draw(t, "label")}
			full := convex.Example{Value: make([]float64, dim), Label: x.Label}
			for j := range dim {
				if rapid.Bool().Draw(t, "there") {
					full.Value[j] = number.Draw(t, "x")
					x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, full.Value[j])
				}
			}
			few, whole = append(few, x), append(whole, full)
		}
		say := func(rows []convex.Example) []byte {
			p := randomizer.Params{Dim: c.Dim(), ClipNorm: 2, Levels: 1 << 30, Units: 3, Coin: randomizer.Fair}
			m, err := report.New(c, p, rand.NewPCG(3, 4))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.At(point, nil); err != nil {
				t.Fatal(err)
			}
			return m.Report(nil, block.Of(rows...))
		}
		if !bytes.Equal(say(few), say(whole)) {
			t.Fatalf("%s: rows that list their features say something else", c.Loss.Name())
		}
	})
}
