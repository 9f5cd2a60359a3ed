package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Cost weighs the two kinds of errors of two classes, in a unit of the caller's.
type Cost struct {
	FalsePositive float64 `json:"false_positive"`
	FalseNegative float64 `json:"false_negative"`
}

// Threshold returns the probability above which predicting the positive class costs less, if probabilities are
// frequencies: FalsePositive/(FalsePositive + FalseNegative).
func (c Cost) Threshold() float64 { return c.FalsePositive / (c.FalsePositive + c.FalseNegative) }

// costFigures hold what a model's errors cost, as means over the examples.
type costFigures struct {
	Cost
	Mean float64 `json:"mean"` // of the decisions that were evaluated
	// Constant is the mean cost of the cheaper of two rules: always positive, never positive.
	Constant float64 `json:"constant"`
	// Best and BestThreshold are of the threshold that costs least on these very examples, which is less than it will
	// cost on others. Nil where there are more than 2^24 scores, or where one of the two rules is cheapest.
	Best          *float64 `json:"best,omitempty"`
	BestThreshold *float64 `json:"best_threshold,omitempty"`
}

func (p Predictor) validateCost(c Cost) error {
	switch {
	case !p.Features.Classification() || p.Features.Outputs() > 1:
		return fmt.Errorf("cost: the %s loss does not decide between two classes", p.Loss.Name())
	case !(c.FalsePositive > 0 && c.FalseNegative > 0) || math.IsInf(c.FalsePositive+c.FalseNegative, 0):
		return fmt.Errorf("cost: %v for a false positive and %v for a false negative, want finite numbers above 0",
			c.FalsePositive, c.FalseNegative)
	case p.traits().Scores.Probable() && !(c.Threshold() > 0 && c.Threshold() < 1):
		return fmt.Errorf("cost: %v and %v are so far apart that the threshold FP/(FP + FN) is %v, want one above 0 and below 1",
			c.FalsePositive, c.FalseNegative, c.Threshold())
	}
	return nil
}

// costs returns the costs of the decisions.
func (t *tally) costs(c Cost) *costFigures {
	n, negatives, positives := float64(t.labels.n), float64(t.labels.counts[0]), float64(t.labels.counts[1])
	out := &costFigures{Cost: c, Constant: min(c.FalsePositive*negatives, c.FalseNegative*positives) / n,
		Mean: (c.FalsePositive*float64(t.confusion[0][1]) + c.FalseNegative*float64(t.confusion[1][0])) / n}
	if t.kept == nil {
		return out
	}
	order := make([]int, len(t.kept))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.kept[a], t.kept[b]) })
	cost := c.FalsePositive * negatives // all predicted positive; then the lowest scores no longer
	least := out.Constant * n
	for i, at := range order {
		if cost += c.FalseNegative; t.classes[at] == 0 {
			cost -= c.FalseNegative + c.FalsePositive
		}
		if i+1 == len(order) || t.kept[order[i+1]] == t.kept[at] || cost >= least {
			continue
		}
		least = cost
		mean, cut := cost/n, (t.kept[at]+t.kept[order[i+1]])/2
		if t.traits().Scores.Probable() {
			cut = sigmoid(cut)
		}
		out.Best, out.BestThreshold = &mean, &cut
	}
	return out
}
