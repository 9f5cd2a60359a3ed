package practical

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Baseline holds the accuracy and the loss of the best constant prediction, computed from the first look's noisy
// release.
type Baseline struct {
	Shares    []float64 // of the classes; nil for numbers and counts
	Mean      float64   // of numbers and counts, as the loss sees them
	Deviation float64   // of labels around Mean, biased upwards
	Accuracy  *float64  // of classes: the largest share
	LossNoise float64   // upper bound on the standard deviation of Loss, for classes
	Loss      *float64  // least mean loss of a constant, class weights included; nil if shares or Mean do not determine it
}

// Baseline returns the baseline that follows from l.
func (p Problem) Baseline(l *Learned) Baseline { return p.BaselineWithin(l, math.Inf(1)) }

// BaselineWithin is like Baseline, with single losses of class probabilities cut at the bound most.
func (p Problem) BaselineWithin(l *Learned, most float64) Baseline {
	s, r := p.shape(), l.Report
	out := Baseline{Shares: r.Shares, Mean: r.Mean, Deviation: r.Deviation}
	if r.Shares != nil {
		most := slices.Max(r.Shares)
		out.Accuracy = &most
	}
	loss := 0.0
	shares, mean := s.weights.weighted(r.Shares)
	switch {
	case s.traits.Scores.Probable():
		of := func(k int) float64 { return min(-s.weights.of(k)*math.Log(shares[k]), most) }
		for k := range shares {
			loss += r.Shares[k] * of(k)
		}
		// The least loss is concave in the shares: it is at most linear with its slope there, the loss of each
		// class at the constant.
		for k := range shares {
			away := of(k) - loss
			out.LossNoise += r.Noise * r.Noise * away * away
		}
		if out.LossNoise = math.Sqrt(out.LossNoise); s.traits.Labels == convex.TwoClasses {
			out.LossNoise *= math.Sqrt2 // with two classes, one share falls as the other grows
		}
	case s.classes > 0 && s.Loss.ClassShape().Least > 0:
		least := s.Loss.ClassShape().Least
		loss = least * mean * slices.Min(shares)
		out.LossNoise = least * r.Noise * s.weights.heaviest()
	case s.traits.HalfSquare:
		loss = r.Deviation * r.Deviation / 2
	default:
		return out
	}
	out.Loss = &loss
	return out
}

// Doubt returns the largest gap between a loss and the sum of its slopes times scores, for scores that are log odds or
// log probabilities: the entropy of the probabilities, times the weight of the class. ok is false for other losses, and
// for noisy labels.
func (p Problem) Doubt() (most float64, ok bool) {
	s := p.shape()
	if !s.traits.Scores.Probable() || s.Loss.LabelNoise != 0 {
		return 0, false
	}
	return s.weights.heaviest() * math.Log(float64(max(2, s.Loss.Classes))), true
}
