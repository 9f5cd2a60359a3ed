package report

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
)

// TestScorer checks that a scorer and evaluation agree, and that neither a scorer nor a maker keeps anything of
// a row.
func TestScorer(t *testing.T) {
	spec, err := task.Parse([]byte(`{version: 1, name: churn, events: {format: libsvm}, intercept: 1, schedule: {users: 100, plan: proved},
  features: {vector: {dimension: 3, min: -1, max: 1, scale: raw}}, label: {positive: ["1"], negative: ["-1"]},
  model: {loss: logistic, radius: 3, clip_norm: 2}, privacy: {epsilon: 1, delta: 1e-3, trust: shuffle}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	card, err := spec.Scorecard(features)
	if err != nil {
		t.Fatal(err)
	}
	loss := convex.Logistic{}
	scorer := NewScorer(features, *card, loss)
	theta := []float64{-0.3, 0, 0.3, -0.3}
	scored := make([]float64, card.Dim())
	for _, label := range []float64{-1, 1} {
		for _, v := range []float64{-1, 0.2, 1} {
			e := convex.Example{Value: slices.Repeat([]float64{v}, features.Dim()), Label: label}
			scorer.Score(scored, theta, e)
			right := features.Predict(features.Scores(nil, theta, e)) == label
			if (card.Accuracy(scored[1]) > 0.5) != right {
				t.Errorf("label %v, features %v: scored %v, predicted right: %v", label, v, scored, right)
			}
			if got, want := card.Loss(scored[0]), min(loss.Value(theta, e), card.High); math.Abs(got-want) > 1e-9 {
				t.Errorf("label %v, features %v: loss %v, want %v", label, v, got, want)
			}
		}
	}
	how := practical.Problem{Loss: convex.Declaration{Name: "squared"}, Features: 3, Bound: 2, Intercept: 1, LabelLow: -1,
		LabelHigh: 1, Users: 100}
	c := Config{Features: 4, Loss: convex.Squared{}, ClipNorm: 1, Practical: &how, Scores: card.Dim(), Score: scorer.Score}
	m, err := New(c, randomizer.Params{Dim: c.Dim(), ClipNorm: card.Joined(1), Levels: 8, Trials: 8, Units: 2,
		Coin: randomizer.Fair}, nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := &convex.Frame{Center: make([]float64, 3), Scale: []float64{0.5, 0.5, 0.5}, Intercept: 0.5, Bound: 9,
		Clip:     0.1,
		Whitener: slices.Repeat([]float64{0.1}, 10)}
	if err := m.At(theta, frame); err != nil {
		t.Fatal(err)
	}
	x := convex.Example{Value: []float64{1, 1, 1, 1}, Label: 1}
	m.Report(nil, block.Block{Rows: []convex.Example{x, x, x}, Ends: []int{2, 3}})
	for name, left := range map[string][]float64{"scores": scorer.scores, "the vector": m.exact.vector,
		"the unit": m.exact.unit, "the row in the frame": m.exact.framed.Value,
		"its gradient": m.exact.plain} {
		if convex.Norm(left) != 0 {
			t.Errorf("%s of a row are kept: %v", name, left)
		}
	}
	if m.exact.framed.Label != 0 {
		t.Errorf("the label of a row is kept: %v", m.exact.framed.Label)
	}
	if slices.Max(m.counts) != 0 {
		t.Errorf("the counts of a row are kept: %v", m.counts)
	}
}
