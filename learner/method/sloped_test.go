package method

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"pgregory.net/rapid"
)

// TestSlopesAreBelowLosses checks that the gradient that a device reports, clipped and weighted, never
// overstates its loss: the inner product with the point is at most the loss, and at least minus the doubt.
func TestSlopesAreBelowLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(2, 4).Draw(t, "classes")
		of := convex.Declaration{Name: "logistic"}
		if classes > 2 {
			of = convex.Declaration{Name: "softmax", Classes: classes}
		}
		if rapid.Bool().Draw(t, "weighted") {
			of.ClassWeights = rapid.SliceOfN(rapid.Float64Range(0.2, 5), classes, classes).Draw(t, "weights")
		}
		loss, err := of.New()
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		p := practical.Problem{Loss: of, Features: 3, Bound: 2, Intercept: 1, Users: 1000,
			Set: convex.SetDeclaration{Radius: convex.MaxScale}}
		frame := convex.Frame{Center: []float64{0.1, 0, -0.3}, Scale: []float64{1, 4, 0.5}, Intercept: 1, Bound: 2,
			Clip: math.Exp(4*rng.Float64() - 3)}
		w := make([]float64, loss.Parameters(4))
		scale := math.Exp(6*rng.Float64() - 2)
		for i := range w {
			w[i] = scale * rng.NormFloat64()
		}
		learned := practical.Learned{Frame: frame, Gain: 1, Weight: 1}
		exact, err := report.NewExact(report.Config{Features: 4, Loss: loss, ClipNorm: 1, Practical: &p})
		if err != nil {
			t.Fatal(err)
		}
		if err := exact.At(learned.Point(w), &frame); err != nil {
			t.Fatal(err)
		}
		row := convex.Example{Value: []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 1},
			Label: float64(rng.IntN(classes))}
		if classes == 2 {
			row.Label = 2*row.Label - 1
		}
		said := 0.0
		for i, g := range exact.Unit(row) {
			said += g * w[i] * frame.Clip
		}
		var framed convex.Example
		frame.Apply(&framed, row)
		lost := loss.Value(learned.Point(w), framed)
		doubt, ok := p.Doubt()
		if reach := frame.Clip * convex.Norm(w); !ok || said > lost+1e-9*(1+lost) || said < -doubt-1e-9 ||
			math.Abs(said) > reach*(1+1e-9) {
			t.Fatalf("a row whose loss is %v says %v, of doubt %v and reach %v", lost, said, doubt, reach)
		}
	})
}

// TestLeastMeanHolds checks with exact probabilities of coins that the least expectation is above the true one
// no more often than promised.
func TestLeastMeanHolds(t *testing.T) {
	const n = 60
	for _, rare := range []float64{1, 4, 9} {
		for _, q := range []float64{0.01, 0.2, 0.5, 0.9} {
			wrong, all := 0.0, 0.0
			for k := range n + 1 {
				choose, _ := math.Lgamma(n + 1)
				less, _ := math.Lgamma(float64(k + 1))
				more, _ := math.Lgamma(float64(n - k + 1))
				chance := math.Exp(choose - less - more + float64(k)*math.Log(q) + float64(n-k)*math.Log(1-q))
				all += chance
				observed := -3 + 10*float64(k)/n
				least := leastMean(observed, -3, 7, n, rare)
				if least > -3+10*q {
					wrong += chance
				}
				if least > observed {
					t.Errorf("%v is the least expectation of %v", least, observed)
				}
			}
			if wrong > math.Exp(-rare) || math.Abs(all-1) > 1e-9 {
				t.Errorf("coins of %v: too large with probability %v, want at most %v", q, wrong, math.Exp(-rare))
			}
		}
	}
	if least := leastMean(0.5, 0, 1, 1e6, 9); least < 0.49 {
		t.Errorf("a million numbers of mean 0.5 have an expectation of at least %v", least)
	}
}
