package rehearse

import (
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// TestFeaturesThatGrow to four times what the first look saw, while what they mean of the label stays: rows are then
// far longer than the look says. A model that learns of rows cut to twice that length has a log loss of .55 on whole
// ones, which is how models are used; the best has .39.
func TestFeaturesThatGrow(t *testing.T) {
	const features, events, wide = 8, 40_000, 12
	r := rand.New(rand.NewPCG(21, 22))
	truth := randomDirection(r, features, 2.5)
	m := madeStream{horizon: 10_000, epsilon: 4, indicators: make([]bool, features)}
	for i := range events {
		x := make([]float64, features+1)
		size, z := 1.0, 0.0
		if i > events/4 {
			size = min(1+8*(float64(i)/events-0.25), 4)
		}
		for j := range features {
			v := size * r.NormFloat64()
			z += v * truth[j] / size
			x[j] = min(max(v, -wide), wide) / wide
		}
		x[features] = 1
		label := -1.0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			label = 1
		}
		m.rows = append(m.rows, convex.Example{Value: x, Label: label})
	}
	job := m.task(t)
	s := Rehearsal{Rows: rowsOf(t, job, m.rows), job: job}
	out, err := s.series(t.Context(), trials{"private", io.Discard, 1, 1}, sim.Config{Plan: job.Plan})
	if err != nil {
		t.Fatal(err)
	}
	curve := out.runs[0].Prequential.Curve
	late, quarter := 0.0, curve[len(curve)*3/4:]
	for _, stretch := range quarter {
		late += *stretch.LogLoss / float64(len(quarter))
	}
	if late > 0.51 {
		t.Errorf("log loss of the last quarter: %.4f, want at most 0.51", late)
	}
}
