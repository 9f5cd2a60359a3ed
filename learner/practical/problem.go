package practical

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Problem holds the parts of the declaration that a practical plan depends on; all of it is public.
type Problem struct {
	Loss       convex.Declaration
	Features   int     // of a row, the intercept left out; at least 1
	Indicators []bool  // one for each feature: those that are 0 or 1, and their own squares; nil: none is
	Bound      float64 // X: largest norm of the features that the declaration allows, the intercept left out
	Intercept  float64 // value of the intercept feature, a row's last; 0: no intercept and no centring
	// LabelLow and LabelHigh are the range of labels as the loss sees them: 0 and the largest for counts; without meaning
	// for classes.
	LabelLow, LabelHigh float64
	Clip                float64 // of gradients, in the frame's coordinates; 0: chosen from the looks
	// lambda of the objective's term (lambda/2) ||theta||^2, in plain coordinates
	Ridge float64
	Set   convex.SetDeclaration // that the model stays in; the zero value: none
	// Start is the point at which steps begin, in plain coordinates; nil: chosen from the looks.
	Start []float64 `json:",omitempty"`
	// StartUsers is the approximate number of users that Start was learned from; 0: unknown. StartNoise is the
	// standard deviation of one coordinate of their released sum at clip norm 1, 0 without noise.
	StartUsers  float64 `json:",omitempty"`
	StartNoise  float64 `json:",omitempty"`
	Users       uint64  // n, the protected units: events, or people
	Interactive bool    // the same users answer all gradient rounds
	Continuous  bool    // more users come after these: see StreamLayout, Learned.Stream and method.Bank

	// Even reports whether everybody takes part in every round, looks too, with an equal share of the rows of each silo
	// or, if Interactive, of the budget of each user.
	Even bool `json:",omitempty"`
	// Radius is the share of the clip norm that the mean gradient of one person's rows is cut to; 0 means 1.
	// Looks are cut at their norm.
	Radius float64 `json:",omitempty"`
}

// Check names the first field that is out of range.
func (p Problem) Check() error {
	if err := p.Loss.Check(); err != nil {
		return fmt.Errorf("practical: loss: %w", err)
	}
	sound := func(x float64) bool { return math.Abs(x) <= convex.MaxScale }
	switch {
	case p.Features < 1:
		return fmt.Errorf("practical: %d features, want at least 1", p.Features)
	case p.Indicators != nil && len(p.Indicators) != p.Features:
		return fmt.Errorf("practical: %d indicators, want %d", len(p.Indicators), p.Features)
	case !(p.Bound > 0 && sound(p.Bound)):
		return fmt.Errorf("practical: bound: %v, want a number above 0 and at most %g", p.Bound, convex.MaxScale)
	case !(p.Intercept >= 0 && sound(p.Intercept)):
		return fmt.Errorf("practical: intercept: %v, want 0 to %g", p.Intercept, convex.MaxScale)
	case !(p.Clip >= 0 && sound(p.Clip)):
		return fmt.Errorf("practical: clip: %v, want 0 to %g", p.Clip, convex.MaxScale)
	case !(p.Ridge >= 0 && sound(p.Ridge)):
		return fmt.Errorf("practical: ridge: %v, want 0 to %g", p.Ridge, convex.MaxScale)
	case p.Start != nil && len(p.Start) != p.Parameters():
		return fmt.Errorf("practical: start: %d numbers, want %d", len(p.Start), p.Parameters())
	case slices.ContainsFunc(p.Start, func(x float64) bool { return !sound(x) }):
		return fmt.Errorf("practical: start: want numbers of at most %g in magnitude", convex.MaxScale)
	case !(p.StartUsers >= 0 && sound(p.StartUsers) && p.StartNoise >= 0 && sound(p.StartNoise)):
		return fmt.Errorf("practical: start: of %v users with noise %v, want numbers from 0 to %g", p.StartUsers,
			p.StartNoise, convex.MaxScale)
	case !(p.Radius >= 0 && p.Radius <= 1):
		return fmt.Errorf("practical: radius: %v, want 0 to 1", p.Radius)
	case p.Users < 1:
		return fmt.Errorf("practical: no users")
	case !p.shape().traits.Labels.Classes() && !(p.LabelLow < p.LabelHigh && sound(p.LabelLow) && sound(p.LabelHigh)):
		return fmt.Errorf("practical: labels from %v to %v, want a range within %g", p.LabelLow, p.LabelHigh, convex.MaxScale)
	}
	return nil
}

// Parameters returns the length of a model.
func (p Problem) Parameters() int {
	s := p.shape()
	return s.dim * s.blocks
}

// Blocks returns the number of weight vectors, each for one score.
func (p Problem) Blocks() int { return p.shape().blocks }

// Deflated reports whether a whitener shortens the mean of the features, for each class alone, because there is no
// intercept to absorb it. It is false with a declared start, which keeps its coordinates, and with more than matrixDim
// coordinates, for which a whitener would make rounds long.
func (p Problem) Deflated() bool { return p.shape().deflated }
