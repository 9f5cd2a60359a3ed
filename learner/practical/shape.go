package practical

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A shape is a Problem with derived quantities that several formulas use.
type shape struct {
	Problem
	traits     convex.Traits
	classes    int     // 0 for numbers and counts
	blocks     int     // weight vectors, each for one score
	dim        int     // d, the length of a row
	numbers    int     // features that are no indicators
	uniform    bool    // the set allows no scale for each coordinate: all have the same scale, and no center
	centred    bool    // a constant feature can take up the shift of centring
	matrixable bool    // a matrix is possible, if there are enough users
	deflated   bool    // see Problem.Deflated
	weights    weights // of classes
	radius     float64 // share of its clip norm that a gradient moves a report by at most
	// middle is the label that becomes 0 in units of half. It is 0 for counts, and without centring.
	middle, half float64
}

func (p Problem) shape() shape {
	s := shape{Problem: p, traits: convex.TraitsOf(p.Loss.Name), blocks: 1, dim: p.Features, weights: p.Loss.ClassWeights,
		radius: p.Radius}
	switch s.traits.Labels {
	case convex.TwoClasses:
		s.classes = 2
	case convex.ManyClasses:
		s.classes, s.blocks = p.Loss.Classes, p.Loss.Classes
	}
	if p.Intercept != 0 {
		s.dim++
	}
	for j := range p.Features {
		if !s.indicator(j) {
			s.numbers++
		}
	}
	if p.Radius == 0 {
		s.radius = 1
	}
	s.uniform = p.Set.Kind != "" && p.Set.Kind != "ball"
	s.centred = p.Intercept != 0 && !s.uniform
	short := !s.uniform && s.dim <= matrixDim
	s.matrixable = short && s.classes == 0
	s.deflated = short && p.Intercept == 0 && p.Start == nil
	switch {
	case s.counts():
		s.half = p.LabelHigh
	case !s.centred:
		s.half = max(math.Abs(p.LabelLow), math.Abs(p.LabelHigh))
	default:
		s.middle, s.half = p.LabelLow/2+p.LabelHigh/2, p.LabelHigh/2-p.LabelLow/2
	}
	return s
}

func (s shape) counts() bool { return s.traits.Labels == convex.Counts }

func (s shape) indicator(j int) bool { return s.Indicators != nil && s.Indicators[j] }

// clipAt returns the task's clip if it is set, else the given one.
func (s shape) clipAt(follows float64) float64 {
	if s.Clip > 0 {
		return within(s.Clip)
	}
	return within(follows)
}
