package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// put writes once and insists that our bytes are stored, above the sequences of our earlier records on the same
// stream: a stream that gives a lower sequence has lost some. It tries until it knows, unless the broker will
// never take them.
func (s *Service) put(ctx context.Context, subject string, data []byte, before uint64) error {
	for {
		result, err := s.config.Records.PutOnce(ctx, subject, data)
		switch {
		case err == nil && result.Ours && result.Standing.Sequence <= before:
			return fmt.Errorf("%w: %s stands at stream sequence %d, and %d records were written before it: %s",
				ErrBrokerRolledBack, subject, result.Standing.Sequence, before, brokerWayOut)
		case err == nil && result.Ours && before > 0 && result.Standing.Sequence > before+uint64(stream.KeptRounds)/2:
			return fmt.Errorf(
				"%w: %s stands at stream sequence %d, and this learner knows of %d records before it: others announced rounds "+
					"since, and this one was removed: %s", ErrStateRolledBack, subject, result.Standing.Sequence, before, goneWayOut)
		case err == nil && result.Ours:
			s.answered()
			return nil
		case err == nil:
			return fmt.Errorf("%s: %w", subject, ErrOtherLearner)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, stream.ErrRefused):
			return err
		}
		s.failed(err, "cannot write yet, trying again", "subject", subject)
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// await reads a subject until something is there, or meanwhile refuses to wait any longer. That nothing is there yet
// decides nothing.
func (s *Service) await(ctx context.Context, subject string, meanwhile func(context.Context) error) (stream.Message,
	error) {
	for {
		msg, err := s.config.Records.Get(ctx, subject)
		switch {
		case err == nil:
			s.answered()
			return msg, nil
		case ctx.Err() != nil:
			return stream.Message{}, context.Cause(ctx)
		case errors.Is(err, stream.ErrRefused):
			return stream.Message{}, err
		case errors.Is(err, stream.ErrNotFound):
			s.answered()
			if err := meanwhile(ctx); err != nil {
				return stream.Message{}, err
			}
		default:
			s.failed(err, "cannot read yet, trying again", "subject", subject)
		}
		if err := s.pause(ctx); err != nil {
			return stream.Message{}, err
		}
	}
}

// failed logs a call that failed and is tried again. Of many in a row it logs one now and then, and the rest at level
// debug.
func (s *Service) failed(err error, message string, attributes ...any) {
	if cause := err.Error(); cause != s.cause {
		s.cause = cause
		observe.Tell(s.config.Observer.Trouble, cause)
	}
	s.config.Logger.Log(context.Background(), s.trouble.Level(time.Now(), err), message, append(attributes, "error",
		err)...)
}

// answered ends a row of failures.
func (s *Service) answered() {
	if s.cause != "" {
		s.cause = ""
		observe.Tell(s.config.Observer.Trouble, "")
	}
	if s.trouble.Over() {
		s.config.Logger.Info("the broker answers again", "task", s.config.Task)
	}
}

// pause waits for a wake-up, or for the jittered timer that makes up for lost ones.
func (s *Service) pause(ctx context.Context) error {
	_, err := s.pauseFor(ctx, s.config.Poll)
	return err
}

// pauseFor is pause with a timer of at most so long; woken reports whether something else ended it.
func (s *Service) pauseFor(ctx context.Context, most time.Duration) (woken bool, err error) {
	timer := time.NewTimer(most/2 + time.Duration(s.jitter.Int64N(int64(most/2)+1)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case wake, ok := <-s.wake:
		if !ok {
			s.wake = nil
		}
		s.unsure = s.unsure || wake.Subject == ""
	case <-s.config.Finish.changed:
	case <-s.config.History.changed:
		s.edited(ctx)
	case <-timer.C:
		return false, nil
	}
	return true, nil
}
