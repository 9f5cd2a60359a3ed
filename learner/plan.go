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
	Algorithm  string  `json:"algorithm"` // MethodPSGD or MethodPAGD
	Users      uint64  `json:"users"`
	Dim        int     `json:"dim"`
	ExtraDim   int     `json:"extra_dim"`   // coordinates reported after the Dim of the gradient
	Rounds     uint64  `json:"rounds"`      // T, void ones not counted
	Cohort     uint64  `json:"cohort"`      // m, users of a round
	LastCohort uint64  `json:"last_cohort"` // the same for the last round, which takes what is left over
	Minimum    uint64  `json:"minimum_cohort"`
	ClipNorm   float64 `json:"clip_norm"`    // L of the gradient
	EncodeNorm float64 `json:"encoded_norm"` // of the gradient with the extra coordinates, the randomizer's L
	Radius     float64 `json:"radius"`

	// OracleVariance is V of a planned round.
	OracleVariance float64 `json:"oracle_variance"`
	StepSize       float64 `json:"step_size,omitempty"` // PSGD: eta
	V              float64 `json:"v,omitempty"`         // PAGD: v

	// PredictedExcessRisk bounds the expected excess risk on the population. Where Clips holds it refers to the convex
	// surrogate whose gradient the clipped one is (the loss's derivative cut off): decisions survive, probabilities do not.
	PredictedExcessRisk float64 `json:"predicted_excess_risk"`
	// TrivialRisk bounds the excess risk of theta = 0, and Vacuous says that the prediction is no better.
	TrivialRisk float64 `json:"trivial_risk"`
	Vacuous     bool    `json:"vacuous"`
	Clips       bool    `json:"clips"`

	// Privacy is the calibration for one planned cohort, which is what a user pays.
	Privacy accounting.Plan `json:"privacy"`
}

// MakePlan chooses rounds, cohort and randomizer by minimising the method's risk bound over the number of rounds, with the
// accountant's real noise for the final choice. It takes up to a few seconds. The error names the field, or says that no
// cohort meets the privacy target.
func MakePlan(p Problem) (Plan, error) {
	if err := p.Validate(); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	if err := p.request(p.Users).Validate(); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	best, err := newSearch(p).best()
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	out := Plan{
		Algorithm: best.method, Users: p.Users, Dim: p.Dim, ExtraDim: p.ExtraDim,
		Rounds: best.steps, Cohort: best.cohort, LastCohort: best.cohort, Minimum: p.Minimum,
		ClipNorm: p.ClipNorm, EncodeNorm: p.encodedNorm(), Radius: p.Radius,
		OracleVariance: best.variance, TrivialRisk: p.gradientNorm() * p.Radius,
		Clips: p.Lipschitz > p.ClipNorm, Privacy: best.privacy,
	}
	// Users left over join the last cohort, unless a limit on rounds leaves out whole cohorts of a fixed size.
	if left := p.Users - best.cohort*best.steps; left < best.cohort || p.Cohort == 0 {
		out.LastCohort += left
	}
	if out.Minimum == 0 {
		out.Minimum = best.cohort - best.cohort/10
	}
	if p.StartRisk > 0 {
		out.TrivialRisk = min(out.TrivialRisk, p.StartRisk)
	}
	switch best.method {
	case MethodPSGD:
		second := p.gradientNorm()*p.gradientNorm() + best.variance
		out.StepSize = PSGDStepSize(p.Radius, second, best.steps)
		out.PredictedExcessRisk = PSGDBound(p.Radius, second, out.StepSize, best.steps)
	case MethodPAGD:
		out.V = PAGDCurvature(p.Radius, p.Smoothness, best.variance, p.damping(), best.steps)
		out.PredictedExcessRisk = PAGDBound(p.Radius, best.variance, out.V, best.steps)
	}
	if math.IsInf(out.PredictedExcessRisk, 0) || math.IsNaN(out.PredictedExcessRisk) || math.IsInf(out.EncodeNorm, 0) {
		return Plan{}, fmt.Errorf("plan: the risk bound overflows for radius %v, clip norm %v, smoothness %v; rescale the features",
			p.Radius, p.ClipNorm, p.Smoothness)
	}
	out.Vacuous = out.PredictedExcessRisk >= out.TrivialRisk
	return out, nil
}

// CohortOf returns the users wanted for a step, from 1 to Rounds.
func (p Plan) CohortOf(step uint64) uint64 {
	if step == p.Rounds {
		return p.LastCohort
	}
	return p.Cohort
}

// Params returns the randomizer of every round. It refuses a plan that can be computed but not run (profile paper).
func (p Plan) Params() (randomizer.Params, error) {
	if !p.Privacy.Runnable || p.Privacy.Trials > math.MaxUint32 || p.Privacy.Levels > math.MaxInt32 {
		return randomizer.Params{}, fmt.Errorf("plan: %d trials a coordinate are more than a report can carry; use profile numeric", p.Privacy.Trials)
	}
	coin, err := randomizer.CoinFromFloat(p.Privacy.P)
	if err != nil {
		return randomizer.Params{}, fmt.Errorf("plan: %w", err)
	}
	out := randomizer.Params{Dim: p.Dim + p.ExtraDim, ClipNorm: p.EncodeNorm,
		Levels: uint32(p.Privacy.Levels), Trials: uint32(p.Privacy.Trials), Coin: coin}
	if err := out.Validate(); err != nil {
		return randomizer.Params{}, fmt.Errorf("plan: %w", err)
	}
	return out, nil
}

// New builds the plan's method at its start, theta = 0.
func New(p Plan) (Algorithm, error) {
	set, err := convex.NewBall(p.Radius)
	if err != nil {
		return nil, err
	}
	switch p.Algorithm {
	case MethodPSGD:
		return NewPSGD(PSGDConfig{Dim: p.Dim, Set: set, Steps: p.Rounds, StepSize: p.StepSize})
	case MethodPAGD:
		return NewPAGD(PAGDConfig{Dim: p.Dim, Set: set, Steps: p.Rounds, V: p.V})
	}
	return nil, fmt.Errorf("algorithm: %q, want %s or %s", p.Algorithm, MethodPSGD, MethodPAGD)
}
