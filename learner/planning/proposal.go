package planning

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Proposal is a plan with its bounds and its calibration. A run needs the plan alone.
type Proposal struct {
	// Plan lacks the deadline and the size of bundles, which are not planned. A phase that is not Runnable has a mechanism
	// with a dimension and a norm, and without a randomizer.
	Plan      *wire.Plan
	Forecasts []Forecast // one for each of Plan.Phases

	// ExcessRisk bounds the expected excess risk on the population. If Plan.Clips holds, it refers to the convex surrogate
	// whose gradient is the clipped gradient (the loss with its derivative cut off), which keeps decisions but not
	// probabilities.
	ExcessRisk float64
	// OnRecords reports whether ExcessRisk bounds the mean loss of the users at hand instead of the population's, as for a
	// schedule.Method with OnRecords and without a ridge.
	OnRecords bool
	// TrivialRisk bounds the excess risk of the start, and Vacuous reports whether the prediction is no better.
	TrivialRisk float64
	Vacuous     bool
	// Why is a sentence with the reason for an automatically chosen method and the bounds compared; "" if the problem
	// names the method.
	Why string

	// spare is the ratio of the largest noise for which the window of trust local has room to the planned standard
	// deviation; 0 means 1.
	spare float64
}

// proposal returns a plan without phases.
func (p Problem) proposal(algorithm string) (Proposal, error) {
	out := Proposal{Plan: &wire.Plan{Algorithm: algorithm, Continuous: continuous[p.Continuous],
		HonestFraction: p.HonestFraction.String(),
		Delta:          p.Delta, EpsilonBudget: p.Epsilon, ClipNorm: p.ClipNorm, Ridge: p.Ridge, Set: manifest.WireSet(p.Set),
		Scorecard: manifest.WireScorecard(p.Validation), Start: p.Start, StartHash: p.StartHash, Silos: p.Silos.Count,
		Radius: p.Radius}}
	if p.ByUser {
		out.Plan.Unit = wire.Unit_UNIT_USER
	}
	if p.Silos.Count > 0 {
		out.spare = float64(p.Silos.Units) / float64(p.Silos.Least)
	}
	var err error
	out.Plan.Trust, err = manifest.WireTrust(p.Trust)
	return out, err
}

// A Forecast holds the bounds and the calibration of one phase.
type Forecast struct {
	Distance       float64 // D, bound on the distance from the phase's start to the optimum
	OracleVariance float64 // V of a planned round
	// Smoothness is beta of the objective, the ridge included; 0 if the constants do not depend on it.
	Smoothness float64
	// Risk bounds the expected excess risk at the phase's end; for a method OnRecords, on the mean loss of the users at
	// hand.
	Risk float64
	// Privacy is the calibration for one planned cohort: the cost to a user for the whole phase. For the cost of all
	// phases of a stint see Proposal.Stints. It is zero for a baseline's noise.
	Privacy accounting.Plan
	Units   uint64 // K of a report; 0 means 1
}

// First returns the forecast of the first phase of gradients, see manifest.Gradients.
func (p Proposal) First() Forecast {
	return p.Forecasts[slices.Index(p.Plan.Phases, manifest.Gradients(p.Plan))]
}

// Inflation returns the factor by which the scores, and the clip of a person's mean, raise the noise of a
// gradient: sqrt(tau^2 + w^2)/L, 1 without either. Noise of minimisers is in units of their own norm, and their
// factor is 1.
func (p Proposal) Inflation() float64 {
	if manifest.Gradients(p.Plan).GetProx() != nil {
		return 1
	}
	return manifest.Gradients(p.Plan).Mechanism.ClipNorm / p.Plan.ClipNorm
}

// Stints returns the releases that the accountant must charge users for, as planned: one list for each of the
// phases that other users answer, with a release for each of the phases that the same users answer.
func (p Proposal) Stints() (out [][]accounting.Release) {
	for i, f := range p.Plan.Phases {
		r := p.Forecasts[i].Privacy.Release()
		if !f.Again {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// Runnable refuses a plan that can be computed but not run (profile paper).
func (p Proposal) Runnable() error {
	for i, f := range p.Forecasts {
		if trials := f.Privacy.Trials; p.Plan.Phases[i].Mechanism.Levels == 0 {
			return fmt.Errorf("plan: %d trials a coordinate are more than a report can carry; use profile numeric", trials)
		}
		if f.Privacy.ProvedEpsilon == nil {
			return fmt.Errorf("plan: no epsilon is proved for these parameters")
		}
	}
	return nil
}

// Sent returns the total cost of the reports of the user, or silo, that sends most of them. cost returns the cost of
// one report of a phase.
func (p *Proposal) Sent(cost func(accounting.Plan) uint64) (most uint64) {
	var all uint64 // of a stint; for a silo with blocks in many rounds, of all phases
	blocks := p.Plan.Silos > 0 && manifest.RoundsPerUser(p.Plan) == 1
	for i, f := range p.Plan.Phases {
		reports := uint64(f.RoundsPerUser)
		if blocks {
			reports = (f.Rounds*f.Cohort + p.Plan.Silos - 1) / p.Plan.Silos
		} else if !f.Again {
			all = 0
		}
		all += reports * cost(p.Forecasts[i].Privacy)
		most = max(most, all)
	}
	return most
}

// add appends a phase with its forecast. dim and norm describe the reported vector, the last coordinates of which are
// scores.
func (p *Proposal) add(f *wire.Phase, of Forecast, dim int, norm float64, scores int) error {
	m, err := mechanism(dim, norm, scores, of.Units, p.window(of.Privacy.Trials), of.Privacy)
	if err != nil {
		return err
	}
	f.Mechanism = m
	p.Plan.Phases = append(p.Plan.Phases, f)
	p.Forecasts = append(p.Forecasts, of)
	return nil
}

// continuous maps the ways to go on to their values on the wire.
var continuous = map[string]wire.Continuous{
	"":                wire.Continuous_CONTINUOUS_NO,
	schedule.Constant: wire.Continuous_CONTINUOUS_CONSTANT,
	schedule.Decaying: wire.Continuous_CONTINUOUS_DECAYING,
	schedule.Epochs:   wire.Continuous_CONTINUOUS_EPOCHS,
	schedule.Adaptive: wire.Continuous_CONTINUOUS_ADAPTIVE,
}

// mechanism returns the randomizer of a calibration, without levels if the calibration cannot be run.
func mechanism(dim int, norm float64, scores int, units uint64, window uint32, of accounting.Plan) (*wire.Mechanism,
	error) {
	p := randomizer.Params{Dim: dim, ClipNorm: norm, Units: units, Minimizer: of.Minimizer}
	if of.Runnable && of.Trials <= math.MaxUint32 && of.Levels <= math.MaxInt32 {
		p.Levels, p.Trials, p.FloorTrials = uint32(of.Levels), uint32(of.Trials), of.FloorTrials
		p.Window = window
		var err error
		if p.Coin, err = randomizer.CoinFromFloat(of.P); err == nil {
			err = p.Validate()
		}
		if err != nil {
			return nil, err
		}
	}
	m := manifest.Mechanism(p, 1)
	m.Scores = uint32(scores)
	return m, nil
}
