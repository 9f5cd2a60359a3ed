package service

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// ErrOtherLearner means that this learner did not write the records on subjects that only it may write.
var ErrOtherLearner = errors.New("another learner is alive on this task, or its state folder was replaced")

// A Service runs one task. It is used once: New, then Run.
type Service struct {
	config Config
	broker broker
}

// New checks the configuration. It has no other effects.
func New(c Config) (*Service, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Service{config: c}
	s.broker = broker{config: c, jitter: rand.New(randomizer.NewEntropy()), edited: s.edited}
	return s, nil
}

// Run learns until the task has taken its last step (nil), ctx is done, or an operator has to act. An error that wraps
// a *state.BudgetError means that the budget refuses a round. If it is the first round, nothing was announced;
// otherwise the task has ended, here and on the broker.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.config.Store.Failed():
			cancel(state.ErrFailed)
		case <-ctx.Done():
		}
	}()
	err := s.run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, state.ErrFailed) && !errors.Is(err, state.ErrFailed) {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("learner service: task %s: %w", s.config.Task, err)
	}
	return nil
}

func (s *Service) run(ctx context.Context) error {
	if err := s.broker.watch(ctx); err != nil {
		return err
	}
	c, err := s.load(ctx)
	if err != nil {
		return err
	}
	past, err := s.reconcile(ctx, c)
	if err != nil {
		return err
	}
	for !c.committed.Ended() {
		if c, err = s.oneRound(ctx, c, past); err != nil {
			return err
		}
	}
	if err := s.broker.put(ctx, s.config.Task.End(), c.committed.End, 0); err != nil {
		return err
	}
	s.config.Logger.Info("task ended", "rounds", c.committed.Cursor.Round)
	return c.refusal()
}

// reconcile compares the committed state with the records on the broker, and puts Task there. It is called at the
// start, and after the broker has lost records.
func (s *Service) reconcile(ctx context.Context, c *core) (past, error) {
	past, err := s.survey(ctx, c)
	if err != nil {
		return past, err
	}
	return past, s.broker.put(ctx, s.config.Task.Task(), c.committed.Task, 0)
}

// announce puts the committed next round on the broker.
func (s *Service) announce(ctx context.Context, c *core) error {
	r := c.round.Round
	return s.broker.put(ctx, s.config.Task.Round(stream.Round(r)), c.committed.NextRound, r) // after Task and r-1 rounds
}

// Check compares the committed state with the records on the broker, as Run does at its start, and writes nothing. It
// returns nil for a state from which Run can continue, and an error that wraps ErrStateRolledBack for an older copy.
// For an ended task the broker may be restored from any earlier time: endless reports whether it holds no End, which
// Run would put.
func (s *Service) Check(ctx context.Context) (endless bool, err error) {
	if _, err := s.config.Store.Load(ctx); err != nil { // s.load would begin a task
		return false, fmt.Errorf("learner service: task %s: %w", s.config.Task, err)
	}
	c, err := s.load(ctx)
	if err == nil {
		var p past
		p, err = s.survey(ctx, c)
		endless = c.committed.Ended() && !p.ended
	}
	if err != nil {
		return false, fmt.Errorf("learner service: task %s: %w", s.config.Task, err)
	}
	return endless, nil
}

// load reads the committed state, or makes the first commit.
func (s *Service) load(ctx context.Context) (*core, error) {
	at, err := s.config.Store.Load(ctx)
	if errors.Is(err, state.ErrEmpty) {
		err = s.first(ctx)
		if err == nil {
			at, err = s.config.Store.Load(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	c, err := resume(s.config.Identity, at)
	if err != nil {
		return nil, err
	}
	if c.task.Name != string(s.config.Task) {
		return nil, fmt.Errorf("the state folder belongs to task %q, not %q: use another --state", c.task.Name, s.config.Task)
	}
	if s.config.StageKey != nil && !s.config.StageKey.Equal(c.stageKey) {
		return nil, fmt.Errorf("stage key: the task was begun with %x, the pinned one is %x: a task never changes its stage",
			[]byte(c.stageKey), []byte(s.config.StageKey))
	}
	alg, err := c.algorithm(at)
	if err != nil {
		return nil, err
	}
	progress := s.progress(ctx, c.task, at, alg)
	observe.Tell(s.config.Observer.Resumed, progress)
	s.config.Logger.Info("task loaded", "round", progress.Round, "rounds", progress.Rounds,
		"epsilon_spent", progress.EpsilonSpent, "honest_fraction", c.task.Plan.HonestFraction)
	return c, nil
}

// first makes the first commit: it needs the stage's key, and so waits for the stage, unless the task has begun.
func (s *Service) first(ctx context.Context) error {
	key := s.config.StageKey
	if key == nil && s.config.Operators {
		return errors.New("trust split: pin the leader's key; nobody is trusted at first use")
	}
	if key == nil {
		s.config.Logger.Info("waiting for the shuffle stage's key")
		msg, err := s.broker.await(ctx, s.config.Task.Stage(), s.unbegun)
		if err != nil {
			return err
		}
		identity := &wire.StageIdentity{}
		if key, err = seal.VerifyStage(msg.Data, identity); err != nil {
			return fmt.Errorf("stage identity: %w", err)
		}
		if identity.Task != string(s.config.Task) {
			return fmt.Errorf("stage identity is for task %q, want %q", identity.Task, s.config.Task)
		}
		s.config.Logger.Warn("trusting the stage's key on first use; pin it with --stage-key")
	}
	body, err := s.config.Prepare()
	if err != nil {
		return err
	}
	body.Version, body.Name = stream.Version, string(s.config.Task)
	body.LearnerKey, body.StageKey = s.config.Identity.Public(), key
	if len(body.Life) == 0 {
		body.Life = make([]byte, stream.LifeSize)
		_, _ = crand.Read(body.Life) // never fails
	}
	start, err := begin(s.config.Identity, body)
	if err != nil {
		return err
	}
	if err := s.config.Store.Commit(ctx, start.next, start.entries); err != nil {
		return fmt.Errorf("commit the task: %w", err)
	}
	return nil
}

// oneRound announces the committed round, waits for its batch, and commits what follows from it.
func (s *Service) oneRound(ctx context.Context, c *core, past past) (*core, error) {
	r := c.round.Round
	if err := s.holdOff(ctx, c, past); err != nil {
		return nil, err
	}
	if s.endsBefore(r, past) {
		return s.abandon(ctx, c)
	}
	err := s.announce(ctx, c)
	if errors.Is(err, ErrOtherLearner) && s.config.AcceptRollback {
		return nil,
			fmt.Errorf(
				"%w; if the standing batches were just applied again, they gave other bytes: use the build of panlearn and the kind of machine that announced the round", err)
	}
	if err != nil {
		return nil, err
	}
	observe.Tell2(s.config.Observer.Announced, r, c.place.Cohort)
	since := time.Now()
	var msg stream.Message
	if came := true; r <= past.decided {
		msg, err = s.broker.standingBatch(ctx, r, func() (stream.Message, error) { return s.broker.batch(ctx, c) })
	} else if msg, came, err = s.awaitBatch(ctx, c); err == nil && !came {
		return s.abandon(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	p, err := s.paceOf(ctx, c, past, time.Since(since))
	if err != nil {
		return nil, err
	}
	step, err := s.consume(ctx, c, msg, s.endsAfter(r, past), p)
	if err != nil {
		return nil, err
	}
	step.applied.Took = time.Since(since)
	observe.Tell(s.config.Observer.Applied, step.applied)
	attributes := []any{"round",
		r, "attempt", step.applied.Attempt, "users", step.applied.BatchUsers, "cohort", step.applied.Cohort,
		"void", step.applied.Void, "epsilon_spent", step.applied.EpsilonSpent, "honest_fraction", c.task.Plan.HonestFraction}
	if step.record.Unused {
		attributes = append(attributes, "unused", true)
	}
	if v := step.applied.Validation; v != nil {
		attributes = append(attributes, "progressive_loss", v.Loss.Recent.Value)
		if v.Accuracy != nil {
			attributes = append(attributes, "progressive_accuracy", v.Accuracy.Recent.Value)
		}
		if v.Worse {
			attributes = append(attributes, "worse_of_late", true)
		}
	}
	if t := step.applied.Tracking; t != nil {
		attributes = append(attributes, "surprise", t.Surprise, "memory_users", t.Memory, "expected_error", t.Error,
			"next_cohort", t.Cohort)
		if t.Alarm && !step.applied.Void { // a void round adds no information
			s.config.Logger.Warn(
				"the stream has changed: the last round is farther from the model than chance explains, and the model follows",
				"round", r, "surprise", t.Surprise, "alarm_above", method.Alarm, "next_cohort", t.Cohort)
		}
	}
	s.config.Logger.Info("round committed", attributes...)
	if v := step.applied.Validation; v != nil && v.Diverges {
		attributes := []any{"round",
			r, "progressive_loss", v.Loss.Recent.Value, "constant_loss", *step.applied.Baseline.Loss, "at_bound", v.AtBound}
		if v.LossAtLeast != nil {
			attributes = append(attributes, "loss_at_least", *v.LossAtLeast)
		}
		s.config.Logger.Warn(
			"the model is recently worse than the best constant: the plan diverges, or noise hides what there is to learn",
			append(attributes, "remedy",
				"fewer features, a smaller features.fourier.gamma, a larger epsilon, more users, or schedule.interactive")...)
	}
	return resume(s.config.Identity, step.next)
}
