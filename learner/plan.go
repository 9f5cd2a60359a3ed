package learner

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Plan fixes everything about a run that is decided before the first round. It is public, and its JSON keeps every
// number exactly, so a stored plan builds the same Algorithm again.
type Plan struct {
	Algorithm  string  `json:"algorithm"`
	Users      uint64  `json:"users"` // n
	Dim        int     `json:"dim"`
	ExtraDim   int     `json:"extra_dim"`    // coordinates reported after the Dim of the gradient: those of Validation
	ClipNorm   float64 `json:"clip_norm"`    // L of the gradient
	EncodeNorm float64 `json:"encoded_norm"` // of the gradient with the extra coordinates, the randomizer's L
	// Validation says what devices report of the announced point's score after the gradient; nil where they report nothing of it.
	Validation *convex.Scorecard `json:"validation,omitempty"`
	// Set is the constraint set that every point of the run lies in.
	Set convex.SetDeclaration `json:"set"`
	// Ridge is lambda of the term (lambda/2)||theta||^2, which is known to all: the learner adds its gradient, no device does.
	Ridge float64 `json:"ridge,omitempty"`
	// Continuous is how the last phase goes on for ever: schedule.Constant, schedule.Decaying or schedule.Epochs. Its
	// Rounds are the horizon that it is planned for then, and every one of its cohorts is Cohort. "" stands for a run that
	// ends after Rounds.
	Continuous string `json:"continuous,omitempty"`

	// Precondition says how the first phase's cohort becomes scales for all others; nil where features are as they are.
	Precondition *convex.Preconditioner `json:"precondition,omitempty"`

	// Phases are the series of steps of the run, in order; at least one. Users of one phase take part in no other. The first one is of
	// one round of moments where there is a Precondition.
	Phases []Phase `json:"phases"`

	// PredictedExcessRisk bounds the expected excess risk on the population. Where Clips holds it refers to the convex
	// surrogate whose gradient the clipped one is (the loss's derivative cut off): decisions survive, probabilities do not.
	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
	// TrivialRisk bounds the excess risk of theta = 0, and Vacuous says that the prediction is no better.
	TrivialRisk float64 `json:"trivial_risk"`
	Vacuous     bool    `json:"vacuous"`
	Clips       bool    `json:"clips"`
	// Why says how schedule.Auto, or no method, came to this one: a sentence with the bounds compared. "" where the task names it.
	Why string `json:"why,omitempty"`
}

// A Phase is a series of steps with one cohort size, one mechanism and one objective.
type Phase struct {
	Users      uint64 `json:"users"`
	Rounds     uint64 `json:"rounds"`      // T, void ones not counted
	Cohort     uint64 `json:"cohort"`      // m, users of a round
	LastCohort uint64 `json:"last_cohort"` // the same for the last round, which takes what is left over
	Minimum    uint64 `json:"minimum_cohort"`
	// Moments says that devices report the squares of their features in place of a gradient.
	Moments bool `json:"moments,omitempty"`
	// RoundsPerUser is how many rounds of the phase one user answers: 1, or all of them where the phase is interactive.
	RoundsPerUser uint64 `json:"rounds_per_user"`

	Distance       float64 `json:"distance"`             // D, bound on the distance from the phase's start to the optimum
	OracleVariance float64 `json:"oracle_variance"`      // V of a planned round
	StepSize       float64 `json:"step_size,omitempty"`  // PSGD and PGD: eta
	V              float64 `json:"v,omitempty"`          // PAGD: v
	Mu             float64 `json:"mu,omitempty"`         // PAGD: modulus of strong convexity that its steps make use of; Theorem 4.8 wants 0
	Smoothness     float64 `json:"smoothness,omitempty"` // PAGD: beta that V is made for, the ridge included; epochs of other lengths need it
	// Smoothing is B of the Moreau envelope whose gradient the devices report; 0 stands for the loss itself.
	Smoothing float64 `json:"smoothing,omitempty"`
	Risk      float64 `json:"risk"` // bound on the expected excess risk at the phase's end

	// Privacy is the calibration for one planned cohort, which is what a user pays for the whole phase.
	Privacy accounting.Plan `json:"privacy"`
}

// Params returns the randomizer of every round of a phase. It refuses a plan that can be computed but not run (profile
// paper).
func (p Plan) Params(phase int) (randomizer.Params, error) {
	privacy := p.Phases[phase].Privacy
	if !privacy.Runnable || privacy.Trials > math.MaxUint32 || privacy.Levels > math.MaxInt32 {
		return randomizer.Params{}, fmt.Errorf("plan: %d trials a coordinate are more than a report can carry; use profile numeric", privacy.Trials)
	}
	coin, err := randomizer.CoinFromFloat(privacy.P)
	if err != nil {
		return randomizer.Params{}, fmt.Errorf("plan: %w", err)
	}
	dim, norm := p.Reported(phase)
	out := randomizer.Params{Dim: dim, ClipNorm: norm,
		Levels: uint32(privacy.Levels), Trials: uint32(privacy.Trials), FloorTrials: privacy.FloorTrials, Coin: coin}
	if err := out.Validate(); err != nil {
		return randomizer.Params{}, fmt.Errorf("plan: %w", err)
	}
	return out, nil
}

// Reported returns the dimension and the norm of what devices encode in a phase.
func (p Plan) Reported(phase int) (dim int, norm float64) {
	if p.Phases[phase].Moments && p.Precondition != nil {
		return p.Precondition.Dim, p.Precondition.Norm
	}
	return p.Dim + p.ExtraDim, p.EncodeNorm
}

// Inflation is what scores make the noise of a gradient: sqrt(L^2 + w^2)/L, 1 without them.
func (p Plan) Inflation() float64 { return p.EncodeNorm / p.ClipNorm }

// Scores is how many of the coordinates that devices encode in a phase, the last ones, are scores.
func (p Plan) Scores(phase int) int {
	if p.Phases[phase].Moments {
		return 0
	}
	return p.ExtraDim
}
