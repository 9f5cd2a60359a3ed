package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Finisher requests that a Service end its task before the last step, at the next commit that can do so. A request
// lasts as long as the process. It is safe for concurrent use.
type Finisher struct {
	mu      sync.Mutex
	asked   bool
	now     bool
	changed chan struct{}
}

// NewFinisher returns a Finisher without a request.
func NewFinisher() *Finisher { return &Finisher{changed: make(chan struct{}, 1)} }

// Finish requests the end. The outcome of an announced round is applied first. With now, a round without a batch is
// given up instead, and stays charged. A second request can only set now.
func (f *Finisher) Finish(now bool) {
	f.mu.Lock()
	f.asked, f.now = true, f.now || now
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *Finisher) state() (asked, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, f.now
}

// giveUp returns the commit that ends the task instead of running the committed next round. That round stays charged as
// it was reserved, because it may be announced and its users may have answered. Its batch is not used, even if it is
// stored.
func (c *core) giveUp() (commit, error) {
	out := commit{next: c.committed}
	void, err := out.next.Ledger.Void(c.round.Round, 0, state.Hash{})
	if err != nil {
		return commit{}, err
	}
	out.entries = append(out.entries, void)
	out.next.NextRound = nil
	out.next.End, err = c.signEnd(c.committed.Cursor.Round, ReasonGivenUp)
	return out, err
}

func (c *core) signEnd(last uint64, reason string) ([]byte, error) {
	signed, err := c.identity.Sign(&wire.End{Version: stream.Version, TaskHash: c.taskHash[:], LastRound: last,
		Reason: reason})
	if err != nil {
		return nil, fmt.Errorf("sign the end: %w", err)
	}
	return signed, nil
}

// endsBefore reports whether the task must end before round r: a stored End gave a round up, or the end was requested
// and the round was not announced yet.
func (s *Service) endsBefore(r uint64, p past) bool {
	if p.ended {
		return p.reason == ReasonGivenUp && r > p.decided
	}
	asked, _ := s.config.Finish.state()
	return asked && r > p.newest
}

// endsAfter reports whether the task must end when round r is applied.
func (s *Service) endsAfter(r uint64, p past) bool {
	if p.ended {
		return p.reason == reasonFinished && r == p.decided
	}
	asked, _ := s.config.Finish.state()
	return asked && r > p.decided
}

// awaitBatch waits for the batch of the announced round; it returns false if the round must be given up. Meanwhile it
// checks that the records that the batch will answer still exist. A record on the subject that the stage did not write
// is logged once, and the wait goes on. The Close that follows a batch wakes the learner; a wake-up may be lost, and a
// batch may be stored without its Close.
func (s *Service) awaitBatch(ctx context.Context, c *core) (stream.Message, bool, error) {
	around := lookout{next: time.Now().Add(lookEvery)}
	said := false
	rest := s.config.Poll
	for {
		quiet := false                    // the broker answered that there is no batch, and nothing else is left to check
		_, now := s.config.Finish.state() // before the read
		msg, err := s.broker.batch(ctx, c)
		forged := errors.Is(err, seal.ErrNotWritten)
		if forged && !said {
			said = true
			s.broker.failed(err, passedOver)
		}
		switch {
		case err == nil:
			s.broker.answered()
			return msg, true, nil
		case ctx.Err() != nil:
			return stream.Message{}, false, context.Cause(ctx)
		case errors.Is(err, stream.ErrRefused):
			return stream.Message{}, false, err
		case !forged && !errors.Is(err, stream.ErrNotFound):
			s.broker.failed(err, "cannot read yet, trying again", "subject", s.config.Task.Batch(stream.Round(c.round.Round)))
		case now:
			return stream.Message{}, false, nil
		case around.due(time.Now(), s.broker.unsure):
			if err := s.lookAround(ctx, c, &around); err != nil {
				return stream.Message{}, false, err
			}
			quiet = s.broker.wake != nil && s.broker.cause == "" && around.missing.IsZero()
		case !forged:
			s.broker.answered()
			quiet = s.broker.wake != nil
		}
		if !quiet {
			rest = s.config.Poll
		}
		woken, err := s.broker.pauseFor(ctx, rest)
		if err != nil {
			return stream.Message{}, false, err
		}
		if rest = min(2*rest, s.config.Rest); woken {
			rest = s.config.Poll
		}
	}
}

// passedOver is logged for a record that was not signed by the subject's writer.
const passedOver = "the broker shows a record that its writer did not write, which is passed over"

// batch reads the batch of the announced round. For a record under another key or of another round it returns
// seal.ErrNotWritten: the broker put it there, or somebody with its rights.
func (b *broker) batch(ctx context.Context, c *core) (stream.Message, error) {
	m, err := b.config.Records.Get(ctx, b.config.Task.Batch(stream.Round(c.round.Round)))
	if err != nil {
		return m, err
	}
	if _, err = seal.VerifyRecord(m, c.stageKey, c.taskHash, new(wire.Batch)); errors.Is(err, seal.ErrNotWritten) {
		return m, err
	}
	return m, nil // other faults are reported where it is applied
}

// abandon commits the end of the task instead of running the next round.
func (s *Service) abandon(ctx context.Context, c *core) (*core, error) {
	r := c.round.Round
	h := s.config.History
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := s.renewed(ctx, c)
	if err != nil {
		return nil, err
	}
	step, err := c.giveUp()
	if err != nil {
		return nil, err
	}
	if err := s.config.Store.Commit(ctx, step.next, step.entries); err != nil {
		return nil, fmt.Errorf("commit the end instead of round %d: %w", r, err)
	}
	s.config.Logger.Info("round given up", "round", r)
	return resume(s.config.Identity, step.next)
}
