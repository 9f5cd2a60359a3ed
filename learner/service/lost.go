package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

// lookEvery is the interval at which a waiting learner checks that its records still exist. It also checks
// after each reconnection.
const lookEvery = 30 * time.Second

// A lookout detects, while a learner waits, that the broker has lost records.
type lookout struct {
	next    time.Time // of the next read
	missing time.Time // since when a record was missing at every read; zero: nothing is missing
}

// due reports whether it is time to read the records.
func (l *lookout) due(now time.Time, unsure bool) bool {
	return unsure || !l.missing.IsZero() || !now.Before(l.next)
}

// lookAround reads the records that must exist while the announced round waits for its batch. A record that is missing
// for Config.Patience is lost; until then a lagging replica may have answered. The learner then acts as at a start,
// with the same refusals: it puts the same bytes again if all records that they follow from exist, or ends with an
// error.
func (s *Service) lookAround(ctx context.Context, c *core, l *lookout) error {
	lost, err := s.broker.missing(ctx, c)
	switch {
	case err != nil && (errors.Is(err, ErrOtherLearner) || errors.Is(err, ErrBrokerRolledBack) ||
		errors.Is(err, stream.ErrRefused)):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		l.missing = time.Time{}
		s.broker.failed(err, "cannot read yet, trying again")
		return nil
	}
	s.broker.answered()
	s.broker.unsure, l.next = false, time.Now().Add(lookEvery)
	switch {
	case len(lost) == 0:
		l.missing = time.Time{}
		return nil
	case l.missing.IsZero():
		l.missing = time.Now()
		return nil
	case time.Since(l.missing) < s.config.Patience:
		return nil
	}
	l.missing = time.Time{}
	for _, subject := range lost {
		s.config.Logger.Warn("the broker has lost a record that stood there", "subject", subject)
		observe.Tell(s.config.Observer.Lost, subject)
	}
	if _, err := s.reconcile(ctx, c); err != nil {
		return fmt.Errorf("the broker has lost records that stood there: %w", err)
	}
	if err := s.announce(ctx, c); err != nil {
		return fmt.Errorf("the broker has lost records that stood there: %w", err)
	}
	s.config.Logger.Warn("put again what the broker had lost", "round", c.round.Round)
	return nil
}

// missing returns the subjects of Task, announced Round and last batch that have no record on the broker. A record with
// other bytes is an error.
func (b *broker) missing(ctx context.Context, c *core) (subjects []string, err error) {
	at := c.committed.Cursor
	read := func(subject string, check func(stream.Message) error) {
		if err != nil {
			return
		}
		var m stream.Message
		switch m, err = b.config.Records.Get(ctx, subject); {
		case errors.Is(err, stream.ErrNotFound):
			subjects, err = append(subjects, subject), nil
		case err == nil:
			err = check(m)
		}
	}
	ours := func(data []byte) func(stream.Message) error {
		return func(m stream.Message) error {
			if !bytes.Equal(m.Data, data) {
				return fmt.Errorf("%s: %w", m.Subject, ErrOtherLearner)
			}
			return nil
		}
	}
	read(b.config.Task.Task(), ours(c.committed.Task))
	read(b.config.Task.Round(stream.Round(c.round.Round)), ours(c.committed.NextRound))
	if at.Round > 0 {
		read(b.config.Task.Batch(stream.Round(at.Round)), func(m stream.Message) error { return sameBatch(at, m) })
	}
	return subjects, err
}

// sameBatch refuses a batch that is not the one that was applied last.
func sameBatch(at state.Cursor, m stream.Message) error {
	if hash := state.Hash(stream.HashOf(m.Data)); hash != at.BatchHash {
		return fmt.Errorf("%w: the batch of round %d there has hash %v, the one that was applied has %v: %s",
			ErrBrokerRolledBack, at.Round, hash, at.BatchHash, brokerWayOut)
	}
	if m.Sequence < at.BatchSequence {
		return fmt.Errorf("%w: the batch of round %d stands at stream sequence %d, it was applied from sequence %d: %s",
			ErrBrokerRolledBack, at.Round, m.Sequence, at.BatchSequence, brokerWayOut)
	}
	return nil
}
