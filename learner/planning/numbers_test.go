package planning

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestBoundsByHand compares with numbers that were worked out by hand from docs/reference/bounds.md.
func TestBoundsByHand(t *testing.T) {
	for what, v := range map[string][2]float64{
		// D^2/(2 eta T) + eta G^2/2 = 4/(2 0.1 8) + 0.1 5/2
		"Lemma 4.2": {PSGDBound(2, 5, 0.1, 8), 2.75},
		// weights 1.25 + 1.5625 of q = 0.8; 4/(2 0.1 2.8125) + 0.25
		"Lemma 4.2 with a ridge": {weightedBound(2, 5, 0.1, 2, 2), 7.36111111},
		// 2 4/(0.1 10) + 0.1 5 (1.5 6/10 + 1/2)
		"constant steps": {streamBound(2, 3, 5, 0.1, 7, false), 8.7},
		// 8 9/(0.1 10) + 0.1 5/sqrt 3
		"decaying steps": {streamBound(2, 3, 5, 0.1, 7, true), 72.2886751},
		// L (L T/m + (2/3) sqrt(2 r T)) = 2 (2 9/50 + (2/3) sqrt(2 0.3 9))
		"stability": {gradientBound{situation: situation{users: 50, steps: 9, rounding: 0.3}, loss: 2}.stability(), 3.81838668},
		// sqrt((4/2 + 2 3 5/3) 3 4)/(2 5)
		"Theorem 4.7": {envelopeSmoothing(2, 5, 3, 3), 1.2},
		// 4 2/3 + 7 sqrt(2 0.02/3), for a user who moves the gradient by 2
		"population": {populationBound(0.02, 4, 7, 3, 2), 3.47495704},
		// S = ln(5/1e-9) 4/(100 1): 0.893308; 1 + S/3 + sqrt(S^2/9 + 2 S)
		"empirical smoothness": {empiricalSmoothness(4, 1, 100, 5, 1e-9), 2.66717908},
	} {
		if math.Abs(v[0]/v[1]-1) > 1e-8 {
			t.Errorf("%s: %.9g, want %.9g", what, v[0], v[1])
		}
	}
}

// TestPhasesThatLearnNothing: where a phase's bound says less than that its end is in the set, the next one is planned for
// the diameter, and not for the radius; and so is the next epoch of a stream.
func TestPhasesThatLearnNothing(t *testing.T) {
	p := Problem{Users: 3000, Dim: 50, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 3}, Epsilon: 0.1, Delta: 1e-6,
		Ridge: 1e-3, Trust: accounting.Shuffle, HonestFraction: accounting.One, Algorithm: schedule.PAGDRestarts}
	p = p.ForLoss(convex.Logistic{}, 1, -1, 1)
	plan, err := MakePlan(p)
	if err != nil || len(plan.Forecasts) < 2 {
		t.Fatal(plan, err)
	}
	if first := plan.Forecasts[0]; restartDistance(first.Risk, p.Ridge) < 6 || plan.Forecasts[1].Distance != 6 {
		t.Errorf("after a risk of %v the next phase is planned for %v, want the diameter 6", first.Risk,
			plan.Forecasts[1].Distance)
	}
	// Epochs of 1 and 2 steps without noise: the last one starts anywhere in the set. v = 2 beta = 2, and 2 v 4 9/(2 3).
	o := objective{lipschitz: 1, dim: 1, smoothness: 1, mean: 1, radius: 3, continuous: schedule.Epochs}
	if got := o.epochs(situation{distance: 3, steps: 3}, 1).risk; math.Abs(got-24) > 1e-9 {
		t.Errorf("two epochs: %v, want 24", got)
	}
}
