package service

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// cost returns the proved upper bound on what a round costs one of its users, together with all other rounds that the
// same user may answer: each round of a stint is charged the cost of the whole stint, so that the largest charge bounds
// a user's cost whichever rounds it answered, and nothing has to be added up. It is for the worst adversary of the
// trust model. It holds for every outcome that check accepts: a missing user is topped up, so at least floor(gamma n) b
// honest trials are in each total however many of the n users answered (docs/proofs/theorem-a.md, dummy noise). Under
// trust local it rests on the b trials of the user's own report alone.
func (c *core) cost(at manifest.Place) (state.Cost, error) {
	honest, err := manifest.HonestFraction(c.task.Plan)
	if err != nil {
		return state.Cost{}, err
	}
	releases, err := at.Releases(honest)
	if err != nil {
		return state.Cost{}, err
	}
	budget := accounting.Budget{Epsilon: c.task.Plan.EpsilonBudget, Delta: c.task.Plan.Delta}
	guarantee, err := accounting.RepeatedWithin(1, [][]accounting.Release{releases}, budget)
	return state.Cost{Epsilon: guarantee.Epsilon, Delta: budget.Delta}, err
}

// reserve charges the round's worst case before it is announced.
func (c *core) reserve(ledger *state.Ledger, r *wire.Round) (state.Entry, error) {
	at, found := manifest.PhaseOf(c.task.Plan, r.Step)
	if !found {
		return state.Entry{}, fmt.Errorf("step %d is not in the plan", r.Step)
	}
	cost, err := c.cost(at)
	if err != nil {
		return state.Entry{}, err
	}
	params, err := manifest.Params(at.Phase.Mechanism)
	if err != nil {
		return state.Entry{}, err
	}
	budget := state.Cost{Epsilon: c.task.Plan.EpsilonBudget, Delta: c.task.Plan.Delta}
	phase := uint64(0)
	if at.Interactive() {
		phase = uint64(at.Stint.Index) + 1
	}
	return ledger.Reserve(state.Entry{
		Round: r.Round, Phase: phase, Users: at.Phase.Minimum, NoiseTrials: params.NoiseTrials(at.Phase.Minimum, at.Planned),
		Epsilon: cost.Epsilon, Delta: cost.Delta, TaskHash: state.Hash(c.taskHash),
	}, budget)
}
