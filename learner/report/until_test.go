package report

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// A stopping context ends when it was asked so often.
type stopping struct {
	context.Context
	left int
}

func (s *stopping) Err() error {
	if s.left--; s.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestMinimiserGivesUp: a device that is stopped does not finish the minimiser that it works on, and draws
// nothing.
func TestMinimiserGivesUp(t *testing.T) {
	c := Config{Loss: convex.Logistic{}, Features: 2, ClipNorm: 1, Prox: &Prox{Weight: 0.5, StepSize: 0.1, Steps: 16000,
		Set: convex.Ball{R: 3}}}
	p := randomizer.Params{Dim: c.Dim(), ClipNorm: c.Norm(), Levels: 8, Trials: 8, Coin: randomizer.Fair, Units: 1,
		Minimizer: true}
	m, err := New(c, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.At(make([]float64, c.Dim()), nil); err != nil {
		t.Fatal(err)
	}
	row := block.Of(convex.Example{Value: []float64{1, 1}, Label: 1})
	ctx := &stopping{context.Background(), 10}
	if out, err := m.ReportUntil(ctx, nil, row); err != context.Canceled || out != nil || ctx.left != -1 {
		t.Errorf("stopped after 10 of 16000 steps: %v, %v, asked %d times more", out, err, -1-ctx.left)
	}
	if out := m.Report(nil, row); len(out) != p.ReportBytes() {
		t.Errorf("then a report of %d bytes, want %d", len(out), p.ReportBytes())
	}
}
