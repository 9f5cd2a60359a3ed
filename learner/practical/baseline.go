package practical

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Baseline is what the best constant prediction does, as the first look released it, noise included.
type Baseline struct {
	Shares    []float64 // of the classes; nil for numbers and counts
	Mean      float64   // of numbers and counts, as the loss sees them
	Deviation float64   // of them around Mean, rather too large than too small
	Accuracy  *float64  // of classes: the largest share
	Loss      *float64  // mean loss of the shares, or of Mean; nil where they do not say it
}

// Baseline is what l says of constants.
func (p Problem) Baseline(l *Learned) Baseline {
	r := l.Report
	out := Baseline{Shares: r.Shares, Mean: r.Mean, Deviation: r.Deviation}
	if r.Shares != nil {
		most := slices.Max(r.Shares)
		out.Accuracy = &most
	}
	loss := 0.0
	switch scores := convex.TraitsOf(p.Loss.Name).Scores; {
	case p.Loss.ClassWeights != nil:
		return out
	case scores == convex.LogOdds || scores == convex.LogProbabilities:
		for _, s := range r.Shares {
			loss -= s * math.Log(s)
		}
	case p.Loss.Name == "hinge": // at a score of -1 or +1
		loss = 2 * slices.Min(r.Shares)
	case p.Loss.Name == "squared":
		loss = r.Deviation * r.Deviation / 2
	default:
		return out
	}
	out.Loss = &loss
	return out
}
