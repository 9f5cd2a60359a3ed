package planning

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Problem is the planner's input. All of it is public. theta, Set, ClipNorm and the constants of the loss
// live in the coordinates of the feature map's output.
type Problem struct {
	Users     uint64 // n, units in all: events, or people
	Dim       int    // d, length of theta
	Algorithm string // one of schedule.Names, or schedule.Auto; "" means DefaultMethod

	ClipNorm float64 // L, to which a device clips its gradient
	// Set is the constraint set of theta; its radius bounds the distance D0 of the start from the optimum.
	Set   convex.SetDeclaration
	Ridge float64 // lambda of the term (lambda/2)||theta||^2 of the objective; 0 for none
	LossFacts
	// Start is the point of Set at which learning begins, nil for the set's own start; StartHash is the SHA-256 of its
	// source.
	Start     []float64
	StartHash []byte

	// Validation makes devices report the announced point's scores on their events after the gradient, and
	// charges for them; nil: no scores.
	Validation *convex.Scorecard

	// Practical holds the input of a practical plan's frame and steps, of which Set, Ridge, Start, Users, Radius,
	// Interactive and Continuous are taken from the problem; nil selects a proved plan.
	Practical *practical.Problem

	Epsilon, Delta float64
	Trust          accounting.Trust
	HonestFraction accounting.Fraction // assumed honest share of a cohort; accounting.One for all
	Coin           accounting.CoinPolicy
	MaxBits        int // bits a coordinate that a report may take; 0 means no limit
	Profile        accounting.Constants

	// Units is K, the units of every report; 0 means 1. Methods of silos set it themselves.
	Units uint64
	Silos Silos // the organisations that report; the zero value: units report for themselves
	// ByUser reports whether a unit is a person. Radius is the norm to which the mean over a unit's rows is
	// clipped, as a share of ClipNorm; 0: 1.
	ByUser bool
	Radius float64

	Rounds

	minimizer bool // reports are minimisers; set by methods that use them
}

// LossFacts holds the constants of a loss on features and labels within bounds, see ForLoss.
type LossFacts struct {
	Smoothness float64 // beta of the loss of one example, +Inf if there is none
	// MeanSmoothness bounds the smoothness of the mean loss over the population, as docs/reference/bounds.md
	// defines it; 0 means Smoothness. The risk bound rests on it, and privacy does not.
	MeanSmoothness float64
	Proximal       bool    // whether the loss has a prox operator, convex.Proximal
	Lipschitz      float64 // of the loss, +Inf if there is none
	StartRisk      float64 // upper bound on the loss at theta = 0; 0 means unknown

	// The arguments of ForLoss, for simulations of the task's shape.
	loss   convex.Loss
	norm   float64
	labels []float64
}

// Rounds holds the declared properties of rounds; the planner chooses the rest.
type Rounds struct {
	Cohort      uint64 // m, users of one round; 0 means planned
	Minimum     uint64 // users without whom a round is not released; 0 means nine tenths of the cohort
	MaxRounds   uint64 // 0 means no limit
	FirstCohort uint64 // of a practical plan: users who report moments; 0 means planned
	Interactive bool   // the same users may be asked in several rounds, as the pgd methods do
	Prox        Prox   // constants of the method prox that are not to be planned
	Continuous  string // one of schedule.Continuous: Users is the horizon of a run that goes on after it
}

// minimum returns the least number of users with which a round of the planned cohort is released.
func (r Rounds) minimum(cohort uint64) uint64 {
	if r.Minimum > 0 {
		return r.Minimum
	}
	return cohort - cohort/10
}

// ForLoss returns p with the constants of the loss for features of norm at most x and labels between the given ones.
func (p Problem) ForLoss(l convex.Loss, x float64, labels ...float64) Problem {
	p.loss, p.norm, p.labels = l, x, labels
	p.Lipschitz, p.Smoothness = l.Lipschitz(x), l.Smoothness(x)
	_, p.Proximal = l.(convex.Proximal)
	theta := make([]float64, l.Parameters(1))
	for _, label := range labels { // a loss that is convex in the score at 0 is largest at an end of the labels' range
		p.StartRisk = max(p.StartRisk, l.Value(theta, convex.Example{Value: []float64{0}, Label: label}))
	}
	return p
}

// validate names the first field that is out of range. Fields that are accounting's business are refused by MakePlan
// in accounting's words.
func (p Problem) validate() error {
	switch {
	case p.Users < 1 || p.Users >= 1<<40:
		return fmt.Errorf("users: %d, want 1 to 2^40-1", p.Users)
	case p.Dim < 1 || p.Dim > method.MaxDim:
		return fmt.Errorf("dim: %d, want 1 to %d", p.Dim, method.MaxDim)
	case p.Algorithm != "" && p.Algorithm != schedule.Auto && !slices.Contains(schedule.Names(), p.Algorithm):
		return fmt.Errorf("algorithm: %q, want %s or %s", p.Algorithm, strings.Join(schedule.Names(), ", "), schedule.Auto)
	case p.Continuous != "" && !slices.Contains(schedule.Continuous(p.Practical != nil), p.Continuous):
		return fmt.Errorf("continuous: %q, want %s or nothing", p.Continuous,
			strings.Join(schedule.Continuous(p.Practical != nil), ", "))
	case !(p.Smoothness > 0):
		return fmt.Errorf("smoothness: %v, want a number above 0, or +Inf", p.Smoothness)
	case !(p.Lipschitz >= 0):
		return fmt.Errorf("lipschitz: %v, want a number of at least 0, or +Inf", p.Lipschitz)
	case p.Cohort > p.Users:
		return fmt.Errorf("cohort: %d, want at most users = %d, or 0 to have it planned", p.Cohort, p.Users)
	case p.Minimum > p.Users || (p.Cohort > 0 && p.Minimum > p.Cohort):
		return fmt.Errorf("minimum cohort: %d, want at most the cohort, or 0 to have it planned", p.Minimum)
	}
	if err := p.Silos.validate(p.Users, p.Rounds, p.Practical != nil); err != nil {
		return err
	}
	if err := p.Prox.validate(); err != nil {
		return err
	}
	if !(p.Radius >= 0 && p.Radius <= 1) || p.Radius > 0 && !p.ByUser {
		return fmt.Errorf("radius: %v, want a share in (0, 1] of people, or 0", p.Radius)
	}
	if _, err := p.Set.New(p.Dim); err != nil {
		return fmt.Errorf("set: %w", err)
	}
	if p.Validation != nil {
		if err := p.Validation.Validate(); err != nil {
			return err
		}
	}
	for _, f := range [...]struct {
		name     string
		value    float64
		positive bool
	}{
		{"clip norm", p.ClipNorm, true}, {"ridge", p.Ridge, false}, {"mean smoothness", p.MeanSmoothness, false},
		{"start risk", p.StartRisk, false},
	} {
		if f.value > 0 || (f.value == 0 && !f.positive) {
			if !math.IsInf(f.value, 0) {
				continue
			}
		}
		if f.positive {
			return fmt.Errorf("%s: %v, want a finite number above 0", f.name, f.value)
		}
		return fmt.Errorf("%s: %v, want a finite number of at least 0", f.name, f.value)
	}
	return nil
}

// meanSmoothness returns the smoothness of the population's mean loss, or of one example's loss where it is not
// declared.
func (f LossFacts) meanSmoothness() float64 {
	if f.MeanSmoothness > 0 {
		return min(f.MeanSmoothness, f.Smoothness)
	}
	return f.Smoothness
}

// gradientNorm bounds the norm of a unit's clipped gradient.
func (p Problem) gradientNorm() float64 { return min(p.unitNorm(), p.Lipschitz) }

// encodedNorm returns the norm to which the gradient of a unit, with the scores after it, is bounded.
func (p Problem) encodedNorm() float64 {
	if p.Validation == nil {
		return p.unitNorm()
	}
	return p.Validation.Joined(p.unitNorm())
}

// encodedDim returns the number of reported coordinates: the gradient's and the scores'.
func (p Problem) encodedDim() int { return p.Dim + p.scores() }

func (p Problem) scores() int {
	if p.Validation == nil {
		return 0
	}
	return p.Validation.Dim()
}

// request returns the accountant's request for a cohort of m reports of Units each that takes part in rounds rounds.
func (p Problem) request(m, rounds uint64) accounting.Request {
	return accounting.Request{Users: m, Dim: p.encodedDim(), Epsilon: p.Epsilon, Delta: p.Delta, Trust: p.Trust,
		HonestFraction: p.HonestFraction, Rounds: int(rounds), Units: p.Units, Minimizer: p.minimizer, MaxBits: p.MaxBits,
		Coin: p.Coin, Profile: p.Profile}
}

// Applies returns an error that explains why a method has no plan for the problem, or nil. See schedule.Case.
func (p Problem) Applies(method string) error { return p.conditions().Validate(method) }

// DefaultMethod returns the method that "" means, see schedule.Case.
func (p Problem) DefaultMethod() string { return p.conditions().Default() }

func (p Problem) conditions() schedule.Case {
	c := schedule.Case{Smooth: !math.IsInf(p.Smoothness, 1), Proximal: p.Proximal, Ridge: p.Ridge > 0,
		Interactive: p.Interactive, Silos: p.Silos.Count > 0, Cohort: p.Cohort > 0, Continuous: p.Continuous}
	if p.Trust.HasIntruder() {
		c.Floors = p.Trust.String()
	}
	c.Minimizers = p.loss != nil && convex.SlopeOf(p.loss) != nil && c.Smooth
	c.All, c.ByUser, c.Scores, c.Set = p.Silos.Reports == p.Silos.Count, p.ByUser, p.Validation != nil, p.Set.Kind
	return c
}

// traitsOf returns the row of a method that is known.
func traitsOf(method string) schedule.Method {
	m, _ := schedule.Of(method)
	return m
}
