package dashboard

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestNumbersShowTheirError: of squared loss in the units of the label, of another loss of numbers as that loss.
func TestNumbersShowTheirError(t *testing.T) {
	loss := 0.18
	for _, c := range []struct {
		name     string
		unit     float64
		baseline *practical.Baseline
		want     string
	}{
		{"squared", 500, &practical.Baseline{Loss: &loss},
			"Root mean squared error 100 in the units of the label; recent rounds; between 0 and 200; the mean has about 300"},
		{"squared, proved", 500, nil,
			"Root mean squared error 100 in the units of the label; recent rounds; between 0 and 200; that of the mean is not released"},
		{"absolute", 0, nil, "Loss 0.02 recent rounds; between 0 and 0.08; that of the mean is not released"},
	} {
		w := newScene()
		w.learn(3)
		w.Board.task.Classes, w.task.LabelUnit = 0, c.unit
		p := w.progress()
		p.Baseline, p.Validation.Accuracy, p.Validation.Loss.Recent = c.baseline, nil, method.Band{Value: 0.02, High: 0.08}
		w.Resumed(p)
		if got := text(w.document(t).byID("tiles")); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPageSaysThatNothingIsMeasured: without scores, and not before the first of those that come.
func TestPageSaysThatNothingIsMeasured(t *testing.T) {
	for _, unscored := range []bool{true, false} {
		w := newScene()
		w.learn(3)
		w.Board.task.Unscored = unscored
		p := w.progress()
		p.Validation = nil
		w.Resumed(p)
		const want = "Quality not measured reports have no scores: validation.off is true"
		if got := text(w.document(t).byID("tiles")); strings.Contains(got, want) != unscored {
			t.Errorf("unscored %t: %q", unscored, got)
		}
	}
}
