package rehearse

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/method"
)

// TestDivergedIsSaid: models worse than the best constant are reported in words, with advice, and so is a real run's
// silence.
func TestDivergedIsSaid(t *testing.T) {
	of := func(loss float64, says bool) Outcome {
		return Outcome{TrainLoss: loss, Progressive: &method.Validation{Diverges: says}}
	}
	constant := Outcome{TrainLoss: 0.5}
	for name, c := range map[string]struct {
		r    report
		want []string
	}{
		"well": {report{Scores: Scores{Baseline: constant, Runs: []Outcome{of(0.3, false)},
			NonPrivate: Outcome{TrainLoss: 0.2}}}, nil},
		"chance": {report{Scores: Scores{Baseline: constant, Runs: []Outcome{of(0.502, false)},
			NonPrivate: Outcome{TrainLoss: 0.2}}}, nil},
		"steps": {report{Scores: Scores{Baseline: constant, Runs: []Outcome{of(1.6, false), of(0.4, false)},
			NonPrivate: Outcome{TrainLoss: 3.3}}}, []string{"1 of 2", "without noise", "features.fourier.gamma",
			"schedule.interactive=true", "validation.loss_bound"}},
		"noise": {report{Scores: Scores{Baseline: constant, Runs: []Outcome{of(1.6, true)},
			NonPrivate: Outcome{TrainLoss: 0.2}}}, []string{"1 of 1", "larger epsilon"}},
		"exactly": {report{Scores: Scores{Baseline: constant, Runs: []Outcome{of(0.4, false)},
			NonPrivate: Outcome{TrainLoss: 3.3}}}, []string{"0 of 1", "without noise"}},
	} {
		d := c.r.divergence("the best constant")
		if (d == nil) != (c.want == nil) {
			t.Errorf("%s: %+v", name, d)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(d.Text, want) {
				t.Errorf("%s: %q without %q", name, d.Text, want)
			}
		}
		if c.r.Diverges = d; d != nil {
			var text strings.Builder
			if err := c.r.Print(&text); err != nil || !strings.Contains(text.String(), "attention     "+d.Text) ||
				d.Silent != !c.r.Runs[0].Progressive.Diverges {
				t.Errorf("%s: %v, prints\n%s", name, err, text.String())
			}
		}
	}
}
