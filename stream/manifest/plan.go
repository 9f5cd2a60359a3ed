package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// RoundHash is the round manifest hash: of the canonical body of a Round.
func RoundHash(round *wire.Round) (stream.Hash, error) {
	body, err := stream.Marshal(round)
	if err != nil {
		return stream.Hash{}, fmt.Errorf("round hash: %w", err)
	}
	return stream.HashOf(body), nil
}

// Cohort is how many users the round of a step takes: plan.cohort, and at the last step all that are left. It is 0 for
// a step that the plan does not have. Rounds run ahead of steps by the void rounds.
func Cohort(plan *wire.Plan, step uint64) uint64 {
	switch {
	case step == 0 || step > plan.GetRounds():
		return 0
	case step < plan.Rounds:
		return plan.Cohort
	}
	return plan.Users - (plan.Rounds-1)*plan.Cohort
}

// MaxDeadline bounds the deadline of a round.
const MaxDeadline = 366 * 24 * time.Hour

// Deadline is how long a round collects before it is content with its minimum; 0 means for ever.
func Deadline(round *wire.Round) time.Duration {
	return time.Duration(min(round.GetDeadlineMs(), uint64(MaxDeadline/time.Millisecond))) * time.Millisecond
}

// CheckTask says whether the plan of a Task can be run: its users fill its rounds, the mixer takes its first and its
// last round, its trust and honest fraction can be read, its deadline is at most MaxDeadline. stream.Check comes before.
func CheckTask(task *wire.Task) error {
	plan := task.GetPlan()
	if plan == nil {
		return errors.New("task: plan: missing")
	}
	if err := checkPlan(plan); err != nil {
		return fmt.Errorf("task: plan: %w", err)
	}
	return nil
}

func checkPlan(plan *wire.Plan) error {
	hi, taken := bits.Mul64(plan.Rounds, plan.Cohort)
	if plan.Rounds == 0 || hi != 0 || taken > plan.Users {
		return fmt.Errorf("users %d: want at least rounds %d times cohort %d", plan.Users, plan.Rounds, plan.Cohort)
	}
	if plan.DeadlineMs > uint64(MaxDeadline/time.Millisecond) {
		return fmt.Errorf("deadline_ms %d: want at most %d", plan.DeadlineMs, MaxDeadline/time.Millisecond)
	}
	if plan.RoundsPerUser == 0 {
		return errors.New("rounds_per_user 0: want at least 1")
	}
	if _, err := Trust(plan.Trust); err != nil {
		return err
	}
	if _, err := HonestFraction(plan); err != nil {
		return err
	}
	for _, r := range []uint64{1, plan.Rounds} {
		if _, err := mixer(plan.Mechanism, Cohort(plan, r), plan.Minimum); err != nil {
			return fmt.Errorf("round %d: %w", r, err)
		}
	}
	return nil
}

// Follows says whether a round is one that the task allows: its hash of the task, number, mechanism, trust, cohort,
// minimum and deadline are those of the plan. A round that does not follow was signed by a learner that is broken
// or lies; nobody must take part in it.
func Follows(task *wire.Task, taskHash stream.Hash, round *wire.Round) error {
	plan := task.GetPlan()
	if plan == nil || round == nil {
		return errors.New("round: no plan to follow, or no round")
	}
	differs := func(field string, got, want any) error {
		return fmt.Errorf("round %d contradicts its task: %s %v, the plan says %v", round.Round, field, got, want)
	}
	switch cohort := Cohort(plan, round.Step); {
	case !bytes.Equal(round.TaskHash, taskHash[:]):
		return fmt.Errorf("round %d is of another task: task_hash %x, want %x", round.Round, round.TaskHash, taskHash)
	case cohort == 0 || round.Step > round.Round:
		return differs("step", round.Step, fmt.Sprintf("1 to %d", min(plan.Rounds, round.Round)))
	case round.Loss != plan.Loss:
		return differs("loss", round.Loss, plan.Loss)
	case round.Cohort != cohort:
		return differs("cohort", round.Cohort, cohort)
	case round.Minimum != plan.Minimum:
		return differs("minimum", round.Minimum, plan.Minimum)
	case round.DeadlineMs != plan.DeadlineMs:
		return differs("deadline_ms", round.DeadlineMs, plan.DeadlineMs)
	case round.Trust != plan.Trust:
		return differs("trust", round.Trust, plan.Trust)
	case !proto.Equal(round.Mechanism, plan.Mechanism):
		return differs("mechanism", round.Mechanism, plan.Mechanism)
	}
	return nil
}
