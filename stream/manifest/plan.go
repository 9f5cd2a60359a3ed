package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// RoundHash returns the round manifest hash: of the canonical body of a Round.
func RoundHash(round *wire.Round) (stream.Hash, error) {
	body, err := stream.Marshal(round)
	if err != nil {
		return stream.Hash{}, fmt.Errorf("round hash: %w", err)
	}
	return stream.HashOf(body), nil
}

// maxDeadline bounds the deadline of a round.
const maxDeadline = 366 * 24 * time.Hour

// Deadline returns the time after which a round is content with its minimum, unless it has a deadline of its own
// (Place.Deadline); 0 means never.
func Deadline(plan *wire.Plan) time.Duration { return deadlineOf(plan.GetDeadlineMs()) }

func deadlineOf(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(maxDeadline/time.Millisecond))) * time.Millisecond
}

// minRetention and maxRetention bound how long the records of a round are kept.
const (
	minRetention = time.Hour
	maxRetention = 10 * 365 * 24 * time.Hour
)

// Retention returns the time for which the records of a round are kept; 0 means for ever.
func Retention(plan *wire.Plan) time.Duration {
	return time.Duration(min(plan.GetRetentionMs(), uint64(maxRetention/time.Millisecond))) * time.Millisecond
}

// CheckTask returns an error if the plan of a Task cannot be run: it requires that the users of its phases fill their
// rounds, that the mixer takes the first and the last round of each, that phases of gradients encode alike, that its
// trust and honest fraction can be read, that its deadlines are at most maxDeadline and its retention within bounds,
// that the accountant can charge each phase, and that it names two operators where its trust has two, and that its issuer's key is one. Call stream.Check
// first.
func CheckTask(task *wire.Task) error {
	plan := task.GetPlan()
	if plan == nil {
		return errors.New("task: plan: missing")
	}
	if err := validatePlan(plan); err != nil {
		return fmt.Errorf("task: plan: %w", err)
	}
	if err := validateSplit(task); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if err := validateGrants(task); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	return nil
}

func validatePlan(plan *wire.Plan) error {
	if plan.DeadlineMs > uint64(maxDeadline/time.Millisecond) {
		return fmt.Errorf("deadline_ms %d: want at most %d", plan.DeadlineMs, maxDeadline/time.Millisecond)
	}
	if s := plan.StaleMs; s != 0 && (plan.DeadlineMs == 0 || s < plan.DeadlineMs ||
		s > uint64(maxDeadline/time.Millisecond)) {
		return fmt.Errorf("stale_ms %d: want deadline_ms %d to %d where rounds have a deadline, or 0", s, plan.DeadlineMs,
			maxDeadline/time.Millisecond)
	}
	if r := plan.RetentionMs; r != 0 && (r < uint64(minRetention/time.Millisecond) ||
		r > uint64(maxRetention/time.Millisecond)) {
		return fmt.Errorf("retention_ms %d: want %d to %d, or 0", r, minRetention/time.Millisecond,
			maxRetention/time.Millisecond)
	}
	if _, err := Trust(plan.Trust); err != nil {
		return err
	}
	if _, err := HonestFraction(plan); err != nil {
		return err
	}
	if n := len(plan.Phases); n == 0 || n > stream.MaxPhases {
		return fmt.Errorf("%d phases: want 1 to %d", n, stream.MaxPhases)
	}
	var users, steps uint64
	for i, f := range plan.Phases {
		if err := validatePhase(plan, i); err != nil {
			return fmt.Errorf("phase %d: %w", i+1, err)
		}
		var more, late uint64
		if !f.Again {
			users, more = bits.Add64(users, f.Users, 0)
		}
		steps, late = bits.Add64(steps, f.Rounds, 0)
		if more != 0 || late != 0 {
			return errors.New("the phases have more users or rounds than can be counted")
		}
	}
	if err := validateUnits(plan); err != nil {
		return err
	}
	if err := validatePractical(plan); err != nil {
		return err
	}
	if err := validateStart(plan); err != nil {
		return err
	}
	if last := stintOf(plan, len(plan.Phases)-1); Endless(plan) && last.Rounds != 1 {
		return fmt.Errorf("endless with rounds_per_user %d in the last phases: want 1, or a user would answer for ever",
			last.Rounds)
	}
	if adaptive := plan.Continuous == wire.Continuous_CONTINUOUS_ADAPTIVE; Endless(plan) &&
		adaptive != (plan.Practical != nil) {
		return fmt.Errorf("continuous %v: want %v in practical plans, and in no other", plan.Continuous,
			wire.Continuous_CONTINUOUS_ADAPTIVE)
	}
	return nil
}

// validateUnits checks that a plan's units and those who report about them agree.
func validateUnits(plan *wire.Plan) error {
	if _, known := wire.Unit_name[int32(plan.Unit)]; !known {
		return fmt.Errorf("unit %d: unknown", plan.Unit)
	}
	if r := plan.Radius; !(r >= 0 && r <= 1) {
		return fmt.Errorf("radius %v: want a share of the clip norm, 0 to 1", r)
	}
	for i, f := range plan.Phases {
		m := f.Mechanism
		switch local := plan.Trust == wire.Trust_TRUST_LOCAL; {
		case local != (m.Window > 0):
			return fmt.Errorf("phase %d: window %d: want one under trust local, and 0 elsewhere", i+1, m.Window)
		case plan.Silos > 0 && max(f.Cohort, LastCohort(f)) > plan.Silos:
			return fmt.Errorf("phase %d: cohort %d, the last %d: want at most the %d silos", i+1, f.Cohort, LastCohort(f),
				plan.Silos)
		case plan.Silos > 0 && stintOf(plan, i).Rounds > 1 && (f.Users != plan.Silos ||
			stintOf(plan, i).Phases != len(plan.Phases)):
			return fmt.Errorf("phase %d: users %d of several rounds: want all %d silos, in every phase of the plan", i+1,
				f.Users, plan.Silos)
		case m.Units != plan.Phases[0].Mechanism.Units:
			return fmt.Errorf("phase %d: units %d: want those of all phases, %d", i+1, m.Units, plan.Phases[0].Mechanism.Units)
		}
	}
	return nil
}

// validatePractical checks the phases of a practical plan against its problem.
func validatePractical(plan *wire.Plan) error {
	if plan.Practical == nil {
		return nil
	}
	if plan.Practical.Features >= stream.MaxDim {
		return fmt.Errorf("practical: %d features: want at most %d", plan.Practical.Features, stream.MaxDim)
	}
	how := Practical(plan)
	if err := how.Check(); err != nil {
		return err
	}
	for i, f := range plan.Phases {
		want := how.Parameters()
		switch f.Statistic {
		case wire.Statistic_STATISTIC_MOMENTS:
			want = how.MomentsDim()
		case wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX:
			want = how.MatrixDim()
		}
		if got := int(f.Mechanism.Dim) - int(f.Mechanism.Scores); got != want {
			return fmt.Errorf("phase %d: dimension %d, want %d of so many features", i+1, got, want)
		}
	}
	if u := plan.Practical.Unit; !(u >= 0) || math.IsInf(u, 0) {
		return fmt.Errorf("practical: unit %v: want a finite number of at least 0", u)
	}
	return nil
}

// validatePhase returns an error if a phase of a plan cannot be run.
func validatePhase(plan *wire.Plan, i int) error {
	f, stint := plan.Phases[i], stintOf(plan, i)
	var answers uint64
	for _, g := range plan.Phases[stint.Index : stint.Index+stint.Phases] {
		answers += uint64(g.GetRoundsPerUser())
	}
	like := Gradients(plan)
	switch hi, taken := bits.Mul64(f.GetRounds(), f.GetCohort()); {
	case f == nil || f.Mechanism == nil:
		return errors.New("no mechanism")
	case looks(f) && (int(f.Statistic) != i+1 || f.Rounds != 1 || f.RoundsPerUser != 1 || like == nil):
		return fmt.Errorf(
			"statistic %d in %d rounds, %d a user: want one round of moments in the first phase, one of their matrix in the second, gradients after them",
			f.Statistic, f.Rounds, f.RoundsPerUser)
	case (plan.Practical != nil) != looks(plan.Phases[0]):
		return errors.New("moments come first in a practical plan, and in no other")
	case !looks(f) && (f.Mechanism.Dim != like.GetMechanism().GetDim() ||
		f.Mechanism.ClipNorm != like.GetMechanism().GetClipNorm() && f.GetProx() == nil ||
		f.Mechanism.Scores != like.GetMechanism().GetScores()):
		return fmt.Errorf("dim %d, clip_norm %v, scores %d: want those of the first phase of gradients", f.Mechanism.Dim,
			f.Mechanism.ClipNorm, f.Mechanism.Scores)
	case looks(f) && f.Mechanism.Scores != 0:
		return fmt.Errorf("scores %d: want 0 in a round of moments, which has no point", f.Mechanism.Scores)
	case f.Rounds == 0 || f.RoundsPerUser == 0:
		return fmt.Errorf("rounds %d, rounds_per_user %d: want at least 1", f.Rounds, f.RoundsPerUser)
	case answers > math.MaxInt32:
		return fmt.Errorf("%d rounds of one user in all phases of a stint: want at most %d", answers, math.MaxInt32)
	case f.RoundsPerUser == 1 && f.Top == 0 && (hi != 0 || taken > f.Users):
		return fmt.Errorf("users %d: want at least rounds %d times cohort %d", f.Users, f.Rounds, f.Cohort)
	case f.RoundsPerUser > 1 && uint64(f.RoundsPerUser) != f.Rounds:
		return fmt.Errorf("rounds_per_user %d: want 1, or all %d rounds", f.RoundsPerUser, f.Rounds)
	case f.Again && (i == 0 || f.Users != plan.Phases[i-1].GetUsers()):
		return fmt.Errorf("again: want a phase before it, of as many users")
	case stint.Rounds > 1 && f.Cohort != f.Users && (plan.Silos == 0 || LastCohort(f) != f.Cohort || f.Cohort > f.Users):
		return fmt.Errorf("cohort %d: want all %d users, who answer each of the %d rounds", f.Cohort, f.Users, stint.Rounds)
	case stint.Phases > 1 && uint64(f.RoundsPerUser) != f.Rounds:
		return fmt.Errorf("rounds_per_user %d: want all %d rounds, in a stint of %d phases", f.RoundsPerUser, f.Rounds,
			stint.Phases)
	case stint.Rounds > 1 && (plan.Trust == wire.Trust_TRUST_PAN || plan.Trust == wire.Trust_TRUST_SHUFFLE_PAN):
		return fmt.Errorf(
			"rounds_per_user %d: want 1 under floors: users of floors who answer several rounds are not supported", stint.Rounds)
	}
	if err := validateShared(plan, f.Mechanism); err != nil {
		return err
	}
	if err := validateProx(plan, f); err != nil {
		return err
	}
	if err := validateAdaptive(plan, i); err != nil {
		return err
	}
	cohorts := []Place{{Cohort: f.Cohort, Planned: f.Cohort}, {Cohort: LastCohort(f), Planned: LastCohort(f)}}
	if f.Top > 0 {
		cohorts = []Place{{Cohort: f.Minimum, Planned: f.Cohort}, {Cohort: f.Top, Planned: f.Cohort}}
	}
	for _, at := range cohorts {
		at.Plan, at.Phase = plan, f
		if _, err := at.Mixer(); err != nil {
			return fmt.Errorf("a round of %d users: %w", at.Cohort, err)
		}
	}
	honest, err := HonestFraction(plan)
	if err == nil {
		_, err = Costliest(plan, i).Releases(honest)
	}
	return err
}

// validateAdaptive refuses a phase that declares adaptive rounds where they cannot be, and one that does not where they
// must.
func validateAdaptive(plan *wire.Plan, i int) error {
	f, adaptive := plan.Phases[i], plan.Continuous == wire.Continuous_CONTINUOUS_ADAPTIVE
	switch last := i == len(plan.Phases)-1; {
	case (f.Top > 0) != (adaptive && last):
		return fmt.Errorf("top %d: want a largest cohort in the last phase of an adaptive plan, and in no other", f.Top)
	case f.Top > 0 && (looks(f) || f.Rounds != 1 || f.Minimum > f.Top || f.Top > f.Cohort):
		return fmt.Errorf(
			"statistic %v, rounds %d, minimum %d, top %d, cohort %d: want gradients, one round, and cohorts in this order",
			f.Statistic, f.Rounds, f.Minimum, f.Top, f.Cohort)
	}
	return nil
}

// Follows returns the place of a round that the task allows: its hash of the task is the task's, its step is one of
// the plan and not ahead of its number, it has as many values of a point as the phase requires, a frame if the plan
// has one (see Practical.CheckFrame), and a deadline within the plan's bounds, if it has one of its own. Everything
// else is fixed by the plan alone. A round that does not follow was signed by a learner that is broken or lies; nobody
// must take part in it.
func Follows(task *wire.Task, taskHash stream.Hash, round *wire.Round) (Place, error) {
	plan := task.GetPlan()
	if plan == nil || round == nil {
		return Place{}, errors.New("round: no plan to follow, or no round")
	}
	differs := func(field string, got, want any) (Place, error) {
		return Place{}, fmt.Errorf("round %d contradicts its task: %s %v, the plan says %v", round.Round, field, got, want)
	}
	at, found := PhaseOf(plan, round.Step)
	if !bytes.Equal(round.TaskHash, taskHash[:]) {
		return Place{}, fmt.Errorf("round %d is of another task: task_hash %x, want %x", round.Round, round.TaskHash,
			taskHash)
	}
	if !found || round.Step > round.Round {
		return differs("step", round.Step, fmt.Sprintf("1 to %d", min(Steps(plan), round.Round)))
	}
	switch {
	case len(round.Point) != at.Point():
		return differs("number of values of the point", len(round.Point), at.Point())
	case (round.Frame != nil) != at.Framed():
		return differs("frame", round.Frame != nil, at.Framed())
	case round.DeadlineMs != 0 && plan.StaleMs == 0:
		return differs("deadline_ms", round.DeadlineMs, "0")
	case round.DeadlineMs != 0 && (round.DeadlineMs < plan.DeadlineMs || round.DeadlineMs > plan.StaleMs):
		return differs("deadline_ms", round.DeadlineMs, fmt.Sprintf("%d to %d, or 0", plan.DeadlineMs, plan.StaleMs))
	case at.Phase.Top == 0 && round.Cohort != 0:
		return differs("cohort", round.Cohort, "the phase's, said by no round")
	case at.Phase.Top > 0 && (round.Cohort < at.Phase.Minimum || round.Cohort > at.Phase.Top):
		return differs("cohort", round.Cohort, fmt.Sprintf("%d to %d", at.Phase.Minimum, at.Phase.Top))
	}
	if round.DeadlineMs != 0 {
		at.Deadline = deadlineOf(round.DeadlineMs)
	}
	if at.Phase.Top > 0 {
		at.Cohort = round.Cohort
	}
	return at, nil
}
