package rehearse

import (
	"fmt"

	"github.com/panlearn/panlearn/internal/wording"
)

// clearly is the ratio to the loss of the best constant above which a loss counts as worse. A smaller one may be
// chance.
const clearly = 1.01

// A diverged describes models that are worse than the best constant.
type diverged struct {
	Runs    int    `json:"runs"`     // of the private ones
	Exact   bool   `json:"exact"`    // the same method without noise, too
	Silent  bool   `json:"silent"`   // no run's progressive validation says so: a real run would not
	AtBound bool   `json:"at_bound"` // a progressive loss is near its bound, where larger ones are cut
	Text    string `json:"text"`     // for people
}

// worseThan compares a loss on the test data, or the training data where there are none, with the constant's. The
// classes of a task without an end have changed since many of these rows, so it compares what was scored on the way.
func (s Outcome) worseThan(constant Outcome) bool {
	if p := s.Prequential; p != nil && p.Accuracy != nil {
		return p.Diverged
	}
	if s.TestLoss != nil && constant.TestLoss != nil {
		return *s.TestLoss > clearly**constant.TestLoss
	}
	return s.TrainLoss > clearly*constant.TrainLoss
}

// divergence describes how much worse than the constant, of that name, the runs' models are; nil where none is worse.
func (r *report) divergence(constant string) *diverged {
	worse := "worse than " + constant
	out := diverged{Exact: r.NonPrivate.worseThan(r.Baseline), Silent: true}
	for _, one := range r.Runs {
		v := one.Progressive
		if one.worseThan(r.Baseline) {
			out.Runs++
		}
		out.Silent, out.AtBound = out.Silent && (v == nil || !v.Diverges), out.AtBound || v != nil && v.AtBound
	}
	switch {
	case out.Runs == 0 && !out.Exact:
		return nil
	case out.Exact:
		out.Text = fmt.Sprintf("%d of %d private models, and that without noise, are %s: %s", out.Runs, len(r.Runs),
			worse, wording.StepsTooLong)
	default:
		out.Text = fmt.Sprintf("%d of %d private models are %s: %s", out.Runs, len(r.Runs), worse, wording.TooMuchNoise)
	}
	if out.AtBound {
		out.Text += ". The progressive loss is " + wording.AtBound
	} else if out.Silent && out.Runs > 0 {
		out.Text += ". A real run would not say so: single losses are cut at validation.loss_bound (a larger one may tell), and few users leave its bands wide"
	}
	return &out
}
