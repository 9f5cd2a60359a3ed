package model

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Baseline holds the results of the best constant: the majority class with the shares of the classes as
// probabilities, or the number at which the mean loss of the labels is least: their mean, for the absolute and the
// quantile loss a quantile. A model that is no better has learned nothing from the features.
type Baseline struct {
	Class string   `json:"class,omitempty"` // the majority
	Value *float64 `json:"value,omitempty"` // the number, in the units of the label
	// Offset reports that the number is added to the public prediction for each event.
	Offset bool    `json:"offset,omitempty"`
	Loss   float64 `json:"loss"` // least mean loss of a constant score; for numbers, Value's

	Accuracy     *float64 `json:"accuracy,omitempty"`
	LogLoss      *float64 `json:"log_loss,omitempty"` // of the shares
	Error        *float64 `json:"error,omitempty"`    // root of the mean square
	MAE          *float64 `json:"mae,omitempty"`
	QuantileLoss *float64 `json:"quantile_loss,omitempty"`
}

// labels holds the labels of a data set.
type labels struct {
	Predictor
	n       int
	counts  []int     // of classes
	values  []float64 // of numbers and counts, as the loss sees them
	offsets []float64 // of these, in the units of the label
}

func newLabels(p Predictor) labels {
	return labels{Predictor: p, counts: make([]int, len(p.Features.Classes()))}
}

// add counts a label, of a number less the event's offset.
func (l *labels) add(y, offset float64) {
	if l.n++; len(l.counts) > 0 {
		l.counts[l.class(y)]++
		return
	}
	l.values, l.offsets = append(l.values, y), append(l.offsets, offset)
}

// class returns the place of a label or a prediction among the classes.
func (l *labels) class(y float64) int {
	if l.Features.Outputs() == 1 {
		return int(y+1) / 2
	}
	return int(y)
}

// label returns the inverse of class.
func (l *labels) label(class int) float64 {
	if l.Features.Outputs() == 1 {
		return float64(2*class - 1)
	}
	return float64(class)
}

// validate refuses labels of which a model learns nothing, and about which a figure says nothing: all equal, or, if
// every class has to be there, of one class fewer.
func (l *labels) validate(every bool) error {
	for k, n := range l.counts {
		if n == 0 && every || n == l.n && l.n > 1 {
			if n == l.n {
				k = (k + 1) % len(l.counts)
			}
			return fmt.Errorf(
				"labels: class %q never occurs in %d rows that fit: it may be spelt otherwise in the data, or the rows are not a sample of all classes",
				l.Features.Classes()[k], l.n)
		}
	}
	if len(l.counts) == 0 && l.n > 1 && slices.Min(l.values) == slices.Max(l.values) {
		return fmt.Errorf(
			"labels: all %d are equal (values outside the declared range are moved to its bounds): there is nothing to predict",
			l.n)
	}
	return nil
}

// ValidateLabels refuses examples whose labels are all equal or, if every class has to be there, with a class that
// never occurs: otherwise a mistyped label looks like a perfect model.
func (p Predictor) ValidateLabels(examples []convex.Example, every bool) error {
	return p.labels(examples).validate(every)
}

// Baseline evaluates the best constant for the examples fit on the examples on.
func (p Predictor) Baseline(fit, on []convex.Example) Baseline {
	return p.labels(fit).baseline(p.labels(on))
}

func (p Predictor) labels(examples []convex.Example) *labels {
	l := newLabels(p)
	for _, e := range examples {
		l.add(e.Label, e.Offset)
	}
	return &l
}

// baseline evaluates the best constant for l on the labels on, of which there is at least one.
func (l *labels) baseline(on *labels) Baseline {
	var out Baseline
	n := float64(on.n)
	constant := l.constant()
	if len(l.counts) == 0 {
		value := l.Features.Predict(constant)
		out.Value, out.Offset = &value, l.Features.HasOffset()
		var square, absolute, pinball float64
		for _, y := range on.values {
			miss := l.Features.Target(y) - value
			square, absolute = square+miss*miss, absolute+math.Abs(miss)
			out.Loss += l.lossOf(constant, y) / n
			if l.traits().Error == convex.Pinball {
				pinball += l.lossOf([]float64{value}, l.Features.Target(y)) / n
			}
		}
		square, absolute = math.Sqrt(square/n), absolute/n
		out.Error, out.MAE = &square, &absolute
		if l.traits().Error == convex.Pinball {
			out.QuantileLoss = &pinball
		}
		return out
	}
	majority := slices.Index(l.counts, slices.Max(l.counts))
	out.Class = l.Features.Classes()[majority]
	accuracy, logLoss := float64(on.counts[majority])/n, 0.0
	for k, count := range on.counts {
		if count == 0 {
			continue
		}
		out.Loss += float64(count) / n * l.lossOf(constant, l.label(k))
		logLoss -= float64(count) / n * math.Log(max(float64(l.counts[k]), unseen)/float64(l.n))
	}
	out.Accuracy = &accuracy
	if l.traits().Scores.Probable() {
		out.LogLoss = &logLoss
	}
	return out
}

// unseen is the number of events that a class counts for if it did not occur and a finite value is needed.
const unseen = 0.5

// constant returns the scores of the best constant.
func (l *labels) constant() []float64 {
	switch l.traits().Constant {
	case convex.LogClassCounts:
		scores := make([]float64, len(l.counts))
		for k, n := range l.counts {
			// at equal scores the loss is the logarithm of their number times the weight of the class
			scores[k] = math.Log(max(float64(n), unseen) * l.lossOf(make([]float64, len(l.counts)), l.label(k)))
		}
		return scores
	case convex.LogMeanLabel:
		return []float64{math.Log(max(stat.Mean(l.values, nil), unseen/float64(l.n)))}
	case convex.Median:
		return []float64{l.quantile(0.5)}
	case convex.Quantile: // its level is the loss of one too little
		return []float64{l.quantile(l.lossOf([]float64{0}, 1))}
	case convex.MeanLabel:
		return []float64{stat.Mean(l.values, nil)}
	}
	return []float64{l.leastLoss()}
}

func (l *labels) quantile(level float64) float64 {
	return stat.Quantile(level, stat.Empirical, slices.Sorted(slices.Values(l.values)), nil)
}

// leastLoss returns the score of two classes or of numbers that has the least mean loss, by golden section: a loss is
// convex. Of numbers it is looked for between the least and the largest label.
func (l *labels) leastLoss() float64 {
	const most, steps = 40, 90 // a score of 40 is a probability of 1 in double precision
	low, high := -float64(most), float64(most)
	of := func(z float64) float64 {
		return float64(l.counts[0])*l.lossOf([]float64{z}, -1) + float64(l.counts[1])*l.lossOf([]float64{z}, 1)
	}
	if len(l.counts) == 0 {
		low, high = slices.Min(l.values), slices.Max(l.values)
		of = func(z float64) (sum float64) {
			for _, y := range l.values {
				sum += l.lossOf([]float64{z}, y)
			}
			return sum
		}
	}
	for range steps {
		a, b := high-(high-low)/math.Phi, low+(high-low)/math.Phi
		if of(a) < of(b) {
			high = b
		} else {
			low = a
		}
	}
	return (low + high) / 2
}

// explained returns the share of the labels' variance that errors of this sum of squares leave: R2, 0 for
// labels that are all equal.
func (l *labels) explained(square float64) float64 {
	mean, total := 0.0, 0.0
	for i, y := range l.values {
		mean += (l.Features.Target(y) + l.offsets[i] - mean) / float64(i+1)
	}
	for i, y := range l.values {
		d := l.Features.Target(y) + l.offsets[i] - mean
		total += d * d
	}
	if total == 0 {
		return 0
	}
	return 1 - square/total
}
