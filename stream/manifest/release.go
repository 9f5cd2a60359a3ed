package manifest

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// Release is what the accountant must charge for a round, together with the others of its phase that one user answers. honest is the
// caller's own assumption, not the learner's: a device computes with its policy's. It refuses what accounting.Release.Validate refuses.
func (p Place) Release(honest accounting.Fraction) (accounting.Release, error) {
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
		Trust: trust, Users: p.Cohort, Dim: params.Dim, Levels: int(params.Levels), Trials: uint64(params.Trials),
		P: params.Coin.Float(), FloorTrials: params.FloorTrials, HonestFraction: honest, Rounds: int(rounds),
	}
	return r, r.Validate()
}

// HonestFraction is the assumption that a plan was made with, exactly.
func HonestFraction(plan *wire.Plan) (accounting.Fraction, error) {
	f, err := accounting.ParseFraction(plan.GetHonestFraction())
	if err != nil {
		return accounting.Fraction{}, fmt.Errorf("plan: honest_fraction: %w", err)
	}
	return f, nil
}
