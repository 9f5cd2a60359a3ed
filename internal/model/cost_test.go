package model

import (
	"math"
	"strings"
	"testing"
)

// TestCosts by hand: scores -1, -1, 1, 2, 3 of no, yes, no, yes, yes.
func TestCosts(t *testing.T) {
	const events = "2,yes\n-1,no\n1,no\n-1,yes\n3,yes\n"
	for _, c := range []struct {
		cost       Cost
		loss       string
		mean, best float64 // best 0: none
		cut        float64 // of the score
	}{
		// above 0: one false positive, one false negative. Above 1.5: one false negative.
		{Cost{1, 1}, "logistic", 2. / 5, 1. / 5, 1.5},
		{Cost{1, 1}, "hinge", 2. / 5, 1. / 5, 1.5},
		{Cost{2, 1}, "logistic", 3. / 5, 1. / 5, 1.5},
		// a false negative costs as much as ten false positives: always positive costs 2, above 1.5 costs 10
		{Cost{1, 10}, "logistic", 11. / 5, 0, 0},
	} {
		e, err := evaluated(t, "loss: "+c.loss, yesNo, events, Options{Cost: &c.cost}, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		cut := c.cut
		if c.loss == "logistic" {
			cut = sigmoid(cut)
		}
		got := e.Cost
		if math.Abs(got.Mean-c.mean) > 1e-12 || (got.Best == nil) != (c.best == 0) ||
			got.Best != nil && (math.Abs(*got.Best-c.best) > 1e-12 || math.Abs(*got.BestThreshold-cut) > 1e-12) ||
			got.Constant != min(2*c.cost.FalsePositive, 3*c.cost.FalseNegative)/5 {
			t.Errorf("%+v of %s: %+v", c.cost, c.loss, got)
		}
		if got.Best == nil {
			continue
		}
		e, err = evaluated(t, "loss: "+c.loss, yesNo, events, Options{Cost: &c.cost, Threshold: got.BestThreshold}, 1, 0)
		if err != nil || e.Cost.Mean != *got.Best {
			t.Errorf("%+v at the best threshold: %+v, %v", c.cost, e.Cost, err)
		}
	}
	for _, c := range []Cost{{0, 1}, {1, -1}, {math.NaN(), 1}, {math.Inf(1), 1}, {1e17, 1}, {5e-324, 1e9}} {
		if _, err := evaluated(t, "loss: logistic", yesNo, events, Options{Cost: &c}, 1, 0); err == nil || !strings.HasPrefix(err.Error(), "cost: ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	half := 0.5 // as the command takes from the cost
	_, err := evaluated(t, "loss: softmax", "classes: [yes, no, may]", events, Options{Cost: &Cost{1, 1}, Threshold: &half},
		zeros("softmax")...)
	if err == nil || !strings.HasPrefix(err.Error(), "cost: the softmax loss does not decide between two classes") {
		t.Errorf("three classes: %v", err)
	}
}
