package service

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// follow adds to a commit the record after its round: the next Round, reserved and signed, or End. finish
// chooses End even where the plan goes on. The pace of the round decides the deadline of the next.
func (c *core) follow(out *commit, alg learner.Algorithm, finish bool, p pace) error {
	reason := ReasonDone
	switch {
	case alg.Done():
	case finish:
		reason = reasonFinished
	default:
		q := alg.Query()
		at, _ := manifest.PhaseOf(c.task.Plan, q.Step) // reserve refuses a step outside the plan
		if at.Phase.GetTop() > 0 {
			at.Cohort = c.cohort(at, q.Cohort, out.lastUsers(), p)
			learner.Announce(alg, at.Cohort) // its clip depends on the cohort
			q = alg.Query()
			q.Cohort = at.Cohort
		}
		round := c.nextRound(out.next.Cursor.Round+1, q)
		round.DeadlineMs = c.deadline(at, out.lastUsers(), p)
		reserved, err := c.reserve(&out.next.Ledger, round)
		var refused *state.BudgetError
		switch {
		case err == nil:
			out.entries = append(out.entries, reserved)
			if out.next.NextRound, err = c.identity.Sign(round); err != nil {
				return fmt.Errorf("sign round %d: %w", round.Round, err)
			}
		case !errors.As(err, &refused):
			return fmt.Errorf("reserve round %d: %w", round.Round, err)
		case out.next.Cursor.Round == 0:
			return err // the task has not begun: the plan itself exceeds the budget
		default:
			reason = ReasonBudget
		}
	}
	if len(out.next.NextRound) == 0 {
		var err error
		if out.next.End, err = c.signEnd(out.next.Cursor.Round, reason); err != nil {
			return err
		}
	}
	var err error
	if out.next.Algorithm, err = alg.MarshalBinary(); err != nil {
		return fmt.Errorf("encode the optimizer state: %w", err)
	}
	out.applied.Progress = progressOf(c.task, out.next, alg)
	return nil
}

// Reasons in End: the last step was taken; the next round would have exceeded the budget; or a Finisher asked
// for the end. Then End replaces the next round, which was not reserved yet, or was reserved and is given up.
const (
	ReasonDone     = "done"
	ReasonBudget   = "privacy budget spent"
	reasonFinished = "finished"
	ReasonGivenUp  = "finished, next round given up"
)

// refusal returns the error that ended a task before its last step: the budget's refusal of the next round. It returns
// nil if the task is done.
func (c *core) refusal() error {
	if c.end.GetReason() != ReasonBudget {
		return nil
	}
	alg, err := c.algorithm(c.committed)
	if err != nil {
		return err
	}
	ledger := c.committed.Ledger
	if _, err := c.reserve(&ledger, c.nextRound(c.committed.Cursor.Round+1, alg.Query())); err != nil {
		return fmt.Errorf("the task ended at round %d: %w", c.committed.Cursor.Round, err)
	}
	// Another version's accountant refused it. Only its signed reason is known.
	return fmt.Errorf("the task ended at round %d: %s", c.committed.Cursor.Round, c.end.Reason)
}

func (c *core) nextRound(r uint64, q method.Query) *wire.Round {
	out := manifest.RoundOf(c.taskHash, r, q.Step, q.Point, manifest.WireFrame(q.Frame))
	out.Cohort = q.Cohort
	return out
}
