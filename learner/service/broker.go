package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// A broker reads and writes the task's records, retries failed calls, and waits.
type broker struct {
	config Config
	jitter *rand.Rand
	edited func(context.Context) // called after a change through the History
	wake   <-chan stream.Wake    // nil: only the timer wakes
	unsure bool                  // the connection was lost, or wakes were, since the last look around

	trouble stream.Trouble // calls that fail
	cause   string         // last passed to Observer.Trouble
}

// watch asks the broker for wake-ups. Without them the learner polls.
func (b *broker) watch(ctx context.Context) error {
	wake, err := b.config.Records.Watch(ctx, b.config.Task)
	switch {
	case err == nil:
		b.wake = wake
	case errors.Is(err, stream.ErrRefused):
		return err
	default:
		b.config.Logger.Warn("no wake-ups from the broker, polling", "error", err, "poll", b.config.Poll)
	}
	return nil
}

// put writes a record once and requires that these bytes are stored, at a sequence above those of our earlier records
// on the stream: a stream that assigns a lower sequence has lost records. It retries until the outcome is known, unless
// the broker will never accept the bytes.
func (b *broker) put(ctx context.Context, subject string, data []byte, before uint64) error {
	for {
		result, err := b.config.Records.PutOnce(ctx, subject, data)
		switch {
		case err == nil && result.Ours && result.Standing.Sequence <= before:
			return fmt.Errorf("%w: %s stands at stream sequence %d, and %d records were written before it: %s",
				ErrBrokerRolledBack, subject, result.Standing.Sequence, before, brokerWayOut)
		case err == nil && result.Ours && before > 0 && result.Standing.Sequence > before+uint64(stream.KeptRounds)/2:
			return fmt.Errorf(
				"%w: %s stands at stream sequence %d, and this learner knows of %d records before it: others announced rounds "+
					"since, and this one was removed: %s", ErrStateRolledBack, subject, result.Standing.Sequence, before, goneWayOut)
		case err == nil && result.Ours:
			b.answered()
			return nil
		case err == nil:
			return fmt.Errorf("%s: %w", subject, ErrOtherLearner)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, stream.ErrRefused):
			return err
		}
		b.failed(err, "cannot write yet, trying again", "subject", subject)
		if err := b.pause(ctx); err != nil {
			return err
		}
	}
}

// await reads a subject until it has a record, or until meanwhile returns an error. That the subject is empty now does
// not show that nothing was written.
func (b *broker) await(ctx context.Context, subject string, meanwhile func(context.Context) error) (stream.Message,
	error) {
	for {
		msg, err := b.config.Records.Get(ctx, subject)
		switch {
		case err == nil:
			b.answered()
			return msg, nil
		case ctx.Err() != nil:
			return stream.Message{}, context.Cause(ctx)
		case errors.Is(err, stream.ErrRefused):
			return stream.Message{}, err
		case errors.Is(err, stream.ErrNotFound):
			b.answered()
			if err := meanwhile(ctx); err != nil {
				return stream.Message{}, err
			}
		default:
			b.failed(err, "cannot read yet, trying again", "subject", subject)
		}
		if err := b.pause(ctx); err != nil {
			return stream.Message{}, err
		}
	}
}

// failed logs a failed call that will be retried. In a run of failures it logs one now and then, and the rest at level
// debug.
func (b *broker) failed(err error, message string, attributes ...any) {
	if cause := err.Error(); cause != b.cause {
		b.cause = cause
		observe.Tell(b.config.Observer.Trouble, cause)
	}
	b.config.Logger.Log(context.Background(), b.trouble.Level(time.Now(), err), message, append(attributes, "error",
		err)...)
}

// answered ends a run of failures.
func (b *broker) answered() {
	if b.cause != "" {
		b.cause = ""
		observe.Tell(b.config.Observer.Trouble, "")
	}
	if b.trouble.Over() {
		b.config.Logger.Info("the broker answers again")
	}
}

// pause waits for a wake-up, or for the jittered timer that makes up for lost ones.
func (b *broker) pause(ctx context.Context) error {
	_, err := b.pauseFor(ctx, b.config.Poll)
	return err
}

// pauseFor works like pause, with a timer of at most most; woken reports whether a wake-up or a change ended it.
func (b *broker) pauseFor(ctx context.Context, most time.Duration) (woken bool, err error) {
	timer := time.NewTimer(most/2 + time.Duration(b.jitter.Int64N(int64(most/2)+1)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case wake, ok := <-b.wake:
		if !ok {
			b.wake = nil
		}
		b.unsure = b.unsure || wake.Subject == ""
	case <-b.config.Finish.changed:
	case <-b.config.History.changed:
		b.edited(ctx)
	case <-timer.C:
		return false, nil
	}
	return true, nil
}

// readPatiently reads until the broker answers. If the record must exist, it also reads until the record is found, or
// until patience has passed with a broker that answers.
func (b *broker) readPatiently(
	ctx context.Context, read func() (stream.Message, error), must bool,
) (stream.Message, error) {
	var since time.Time // of the first answer after the last fault
	for {
		msg, err := read()
		missing := errors.Is(err, stream.ErrNotFound)
		switch {
		case err == nil, missing && !must, errors.Is(err, ErrOtherLearner), errors.Is(err, stream.ErrRefused):
			return msg, err
		case ctx.Err() != nil:
			return stream.Message{}, context.Cause(ctx)
		case !missing:
			since = time.Time{}
			b.failed(err, "cannot read yet, trying again")
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= b.config.Patience:
			return msg, err
		}
		if err := b.pause(ctx); err != nil {
			return stream.Message{}, err
		}
	}
}

// standingBatch reads the batch of a round that is known to be decided.
func (b *broker) standingBatch(
	ctx context.Context, r uint64, read func() (stream.Message, error),
) (stream.Message, error) {
	m, err := b.readPatiently(ctx, read, true)
	if errors.Is(err, stream.ErrNotFound) {
		err = fmt.Errorf("%w: the batch of round %d was there and is gone: %s", ErrBrokerRolledBack, r, brokerWayOut)
	}
	return m, err
}
