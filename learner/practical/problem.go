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
	Intercept  float64 // value of the intercept feature, which is a row's last; 0: none, and then nothing is centred
	// LabelLow and LabelHigh are the range of labels as the loss sees them: 0 and the largest for counts; without meaning
	// for classes.
	LabelLow, LabelHigh float64
	Clip                float64 // of gradients, in the frame's coordinates; 0: what is learned decides
	// lambda of the objective's term (lambda/2) ||theta||^2, in plain coordinates
	Ridge float64
	Set   convex.SetDeclaration // that the model stays in; the zero value: none
	// that steps begin with, in plain coordinates; nil: what the looks say
	Start []float64 `json:",omitempty"`
	// StartUsers is the approximate number of users that Start was learned from; 0: unknown. StartNoise is the
	// standard deviation of one coordinate of their released sum at clip norm 1, 0 without noise.
	StartUsers  float64 `json:",omitempty"`
	StartNoise  float64 `json:",omitempty"`
	Users       uint64  // n, the units that privacy is of: events, or people
	Interactive bool    // all gradient rounds ask the same users
	Continuous  bool    // users keep coming after these: StreamLayout and Learned.Stream, see method.Bank

	// Even reports whether everybody answers every round, looks too, with an equal share: of the rows of each
	// silo, or, where Interactive, of the budget of each user.
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
	case !p.labels().Classes() && !(p.LabelLow < p.LabelHigh && sound(p.LabelLow) && sound(p.LabelHigh)):
		return fmt.Errorf("practical: labels from %v to %v, want a range within %g", p.LabelLow, p.LabelHigh, convex.MaxScale)
	}
	return nil
}

func (p Problem) traits() convex.Traits { return convex.TraitsOf(p.Loss.Name) }

func (p Problem) labels() convex.Labels { return p.traits().Labels }

// Parameters returns the length of a model.
func (p Problem) Parameters() int { return p.dim() * p.Blocks() }

// dim returns d, the length of a row.
func (p Problem) dim() int {
	if p.Intercept != 0 {
		return p.Features + 1
	}
	return p.Features
}

// classes returns the number of classes, 0 for numbers and counts.
func (p Problem) classes() int {
	switch p.labels() {
	case convex.TwoClasses:
		return 2
	case convex.ManyClasses:
		return p.Loss.Classes
	}
	return 0
}

// Blocks returns the number of weight vectors, each for one score.
func (p Problem) Blocks() int {
	if p.labels() == convex.ManyClasses {
		return p.Loss.Classes
	}
	return 1
}

// radius returns the share of its clip norm that a gradient moves a report by at most.
func (p Problem) radius() float64 {
	if p.Radius == 0 {
		return 1
	}
	return p.Radius
}

func (p Problem) counts() bool { return p.labels() == convex.Counts }

func (p Problem) indicator(j int) bool { return p.Indicators != nil && p.Indicators[j] }

func (p Problem) numbers() int {
	n := 0
	for j := range p.Features {
		if !p.indicator(j) {
			n++
		}
	}
	return n
}

// uniform reports whether the set changes under a scale for each coordinate: then all coordinates have the same
// scale, and no center.
func (p Problem) uniform() bool { return p.Set.Kind != "" && p.Set.Kind != "ball" }

// centred reports whether a constant feature can take up the shift of centring.
func (p Problem) centred() bool { return p.Intercept != 0 && !p.uniform() }

// unitLabel returns a label in its declared range as a number in [-1, 1], of a count in [0, 1].
func (p Problem) unitLabel(y float64) float64 {
	middle, half := p.labelRange()
	return min(max((y-middle)/half, -1), 1)
}

// labelRange returns the label that is 0 as a unit label, and the size of one unit. Where no intercept can move
// it, 0 stays 0.
func (p Problem) labelRange() (middle, half float64) {
	switch {
	case p.counts():
		return 0, p.LabelHigh
	case !p.centred():
		return 0, max(math.Abs(p.LabelLow), math.Abs(p.LabelHigh))
	}
	return p.LabelLow/2 + p.LabelHigh/2, p.LabelHigh/2 - p.LabelLow/2
}
