package manifest

import (
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// Release is what the accountant must charge for a round of which one user takes part in roundsPerUser. honest is the
// caller's own assumption, not the learner's: a device computes with its policy's. It refuses what
// accounting.Release.Validate refuses.
func Release(round *wire.Round, honest accounting.Fraction, roundsPerUser uint32) (accounting.Release, error) {
	if round == nil {
		return accounting.Release{}, errors.New("release of a round: no round")
	}
	r, err := release(round, honest, roundsPerUser)
	if err != nil {
		return accounting.Release{}, fmt.Errorf("release of round %d: %w", round.Round, err)
	}
	return r, nil
}

func release(round *wire.Round, honest accounting.Fraction, roundsPerUser uint32) (accounting.Release, error) {
	p, err := Params(round.Mechanism)
	if err != nil {
		return accounting.Release{}, err
	}
	trust, err := Trust(round.Trust)
	if err != nil {
		return accounting.Release{}, err
	}
	if roundsPerUser == 0 || roundsPerUser > math.MaxInt32 {
		return accounting.Release{}, fmt.Errorf("rounds per user %d: want 1 to %d", roundsPerUser, math.MaxInt32)
	}
	r := accounting.Release{
		Trust: trust, Users: round.Cohort, Dim: p.Dim, Levels: int(p.Levels), Trials: uint64(p.Trials),
		P: p.Coin.Float(), FloorTrials: round.Mechanism.FloorTrials, HonestFraction: honest, Rounds: int(roundsPerUser),
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
