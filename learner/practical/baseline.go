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
	Loss      *float64  // least mean loss of a constant, with its class weights; nil where shares or Mean do not say it
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
	shares, mean := p.weighted(r.Shares)
	switch scores := convex.TraitsOf(p.Loss.Name).Scores; {
	case scores == convex.LogOdds || scores == convex.LogProbabilities:
		for _, s := range shares {
			loss -= mean * s * math.Log(s)
		}
	case p.Loss.Name == "hinge": // at a score of -1 or +1
		loss = 2 * mean * slices.Min(shares)
	case p.Loss.Name == "squared":
		loss = r.Deviation * r.Deviation / 2
	default:
		return out
	}
	out.Loss = &loss
	return out
}
