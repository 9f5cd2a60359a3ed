package practical_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestBaselineByHand: the best constant for shares of 0.2 and 0.8, or for labels of mean 2 and deviation 3.
func TestBaselineByHand(t *testing.T) {
	entropy := -0.2*math.Log(0.2) - 0.8*math.Log(0.8)
	two := practical.Report{Shares: []float64{0.2, 0.8}}
	number := practical.Report{Mean: 2, Deviation: 3}
	for _, c := range []struct {
		loss            convex.Declaration
		report          practical.Report
		accuracy, loss1 float64 // NaN: none
	}{
		{convex.Declaration{Name: "logistic"}, two, 0.8, entropy},
		{convex.Declaration{Name: "logistic", ClassWeights: []float64{1, 2}}, two, 0.8,
			-0.2*math.Log(1./9) - 1.6*math.Log(8./9)},
		{convex.Declaration{Name: "softmax", Classes: 2}, two, 0.8, entropy},
		{convex.Declaration{Name: "hinge"}, two, 0.8, 0.4},
		{convex.Declaration{Name: "smoothed-hinge", Width: 1}, two, 0.8, math.NaN()},
		{convex.Declaration{Name: "squared"}, number, math.NaN(), 4.5},
		{convex.Declaration{Name: "poisson", ScoreBound: 3}, number, math.NaN(), math.NaN()},
	} {
		b := practical.Problem{Loss: c.loss}.Baseline(&practical.Learned{Report: c.report})
		for what, one := range map[string]struct {
			got  *float64
			want float64
		}{"accuracy": {b.Accuracy, c.accuracy}, "loss": {b.Loss, c.loss1}} {
			if (one.got == nil) != math.IsNaN(one.want) || one.got != nil && math.Abs(*one.got-one.want) > 1e-12 {
				t.Errorf("%s: %s %v, want %v", c.loss.Name, what, one.got, one.want)
			}
		}
		if b.Mean != c.report.Mean || b.Deviation != c.report.Deviation {
			t.Errorf("%s: %+v", c.loss.Name, b)
		}
	}
}
