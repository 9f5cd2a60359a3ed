package service

import (
	"cmp"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Progress describes how far a task has come.
type Progress struct {
	Round         uint64 // last committed
	Steps         uint64 // rounds that were not void
	Rounds        uint64 // planned steps; 0 for a task without end
	Users         uint64 // counted in all batches
	VoidsInARow   uint64 // void rounds since the last step
	EpsilonSpent  float64
	EpsilonBudget float64
	Delta         float64
	ModelNorm     float64
	// Validation is the result of progressive validation so far; nil where there is none, or before the first
	// round with scores.
	Validation *method.Validation
	// Tracking describes how a learner without an end follows its stream; nil for others, or before the first
	// round of gradients.
	Tracking *method.Tracking
	// Kept is the newest kept model, and Rollback the last rollback; nil if there is none.
	Kept     *Moment
	Rollback *Rollback
	// Baseline holds the released scores of the best constant; nil if none were released.
	Baseline *practical.Baseline
}

// Planned returns the number of steps of a task; 0 for a task without end.
func Planned(plan *wire.Plan) uint64 {
	if manifest.Endless(plan) {
		return 0
	}
	return manifest.Steps(plan)
}

// progressOf sums up a committed state.
func progressOf(task *wire.Task, at state.Checkpoint, alg learner.Algorithm) Progress {
	spent := at.Ledger.Spent()
	return Progress{
		Round: at.Cursor.Round, Steps: at.Ledger.Steps, Rounds: Planned(task.Plan), Users: at.Ledger.Users(),
		VoidsInARow:  at.Ledger.InARow,
		EpsilonSpent: spent.Epsilon, EpsilonBudget: task.Plan.EpsilonBudget, Delta: spent.Delta,
		ModelNorm:  convex.Norm(alg.Model()),
		Validation: learner.ValidationOf(alg), Tracking: TrackingOf(task.Plan, at, alg), Baseline: learner.BaselineOf(alg),
	}
}

// TrackingOf returns how a committed state follows its stream. It adds to learner.TrackingOf the cohort of the
// committed next round, which fast traffic makes larger than the method needs, and its deadline; both are 0 if there is
// no next round.
func TrackingOf(plan *wire.Plan, at state.Checkpoint, alg learner.Algorithm) *method.Tracking {
	t := learner.TrackingOf(alg)
	if t == nil {
		return nil
	}
	signed, round := &wire.Signed{}, &wire.Round{}
	if len(at.NextRound) > 0 && stream.Unmarshal(at.NextRound, signed) == nil &&
		stream.Unmarshal(signed.Body, round) == nil {
		t.Cohort, t.DeadlineMs = round.Cohort, cmp.Or(round.DeadlineMs, plan.GetDeadlineMs())
	} else {
		t.Cohort = 0
	}
	return t
}

// A batchSummary is the part of the last batch that the state keeps for display.
type batchSummary struct {
	Round       uint64            `json:"round"`
	Attempt     uint64            `json:"attempt"`
	Void        bool              `json:"void"`
	Reason      string            `json:"reason,omitempty"`
	Cohort      uint64            `json:"cohort"`
	Users       uint64            `json:"users"`
	NoiseTrials uint64            `json:"noise_trials"`
	Rejects     map[string]uint64 `json:"rejects"`
}

func summary(b *wire.Batch, cohort uint64) batchSummary {
	return batchSummary{Round: b.Round, Attempt: b.Attempt, Void: b.Void, Reason: b.Reason, Cohort: cohort,
		Users: b.Users, NoiseTrials: b.NoiseTrials, Rejects: rejects(b)}
}

func rejects(b *wire.Batch) map[string]uint64 {
	out := make(map[string]uint64, len(b.Rejects))
	for _, r := range b.Rejects {
		out[r.Reason] = r.Count
	}
	return out
}
