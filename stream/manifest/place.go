package manifest

import (
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Place locates a step in a plan and holds everything that the plan fixes of a round of that step. Follows also
// fills in the deadline that a round has of its own.
type Place struct {
	Plan   *wire.Plan
	Phase  *wire.Phase
	Index  int    // of the phase in the plan
	First  uint64 // step of the phase
	Cohort uint64 // users at which the round is full, see Cohort
	// Planned is the number of users that the noise of the round is planned for: Cohort, or in an adaptive phase at
	// least as many.
	Planned uint64
	Stint   Stint // that the phase belongs to

	Deadline time.Duration // of the round: its own, or else the plan's; 0: none
}

// release returns the release that the accountant must charge for a round, together with the other rounds of its phase
// in which one user takes part.
func (p Place) release(honest accounting.Fraction) (accounting.Release, error) {
	params, err := Params(p.Phase.GetMechanism())
	if err != nil {
		return accounting.Release{}, err
	}
	trust, err := Trust(p.Plan.GetTrust())
	if err != nil {
		return accounting.Release{}, err
	}
	rounds := p.Phase.GetRoundsPerUser()
	if rounds == 0 || rounds > math.MaxInt32 {
		return accounting.Release{}, fmt.Errorf("rounds per user %d: want 1 to %d", rounds, math.MaxInt32)
	}
	r := accounting.Release{
		Trust: trust, Users: p.Planned, Dim: params.Dim, Levels: int(params.Levels), Trials: uint64(params.Trials),
		P: params.Coin.Float(), FloorTrials: params.FloorTrials, HonestFraction: honest, Rounds: int(rounds),
		Units:     params.Units,
		Minimizer: params.Minimizer,
	}
	return r, r.Validate()
}

// HonestFraction returns the assumption that a plan was made with, exactly.
func HonestFraction(plan *wire.Plan) (accounting.Fraction, error) {
	f, err := accounting.ParseFraction(plan.GetHonestFraction())
	if err != nil {
		return accounting.Fraction{}, fmt.Errorf("plan: honest_fraction: %w", err)
	}
	return f, nil
}

// Mixer returns the configuration with which the stage mixes a round. Its Entropy is nil, the right value in
// production. Mixer returns the errors of shuffle.Config.Validate, such as a total that could reach 2^63, or a bundle
// larger than the cohort.
func (p Place) Mixer() (shuffle.Config, error) {
	params, err := Params(p.Phase.GetMechanism())
	if err != nil {
		return shuffle.Config{}, err
	}
	cfg := shuffle.Config{
		Params: params, Cohort: p.Cohort, Planned: p.Planned, Minimum: p.Phase.GetMinimum(),
		MaxBundle: uint64(p.Phase.GetMechanism().GetMaxBundle()),
	}
	return cfg, cfg.Validate()
}
