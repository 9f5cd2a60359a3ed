package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// consume applies the batch of the announced round and commits the result with the round's record in one write. The
// committed state may have changed through the History since the announcement.
func (s *Service) consume(ctx context.Context, c *core, msg stream.Message, finish bool, p pace) (commit, error) {
	h, r := s.config.History, c.round.Round
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(ctx); err != nil {
		s.config.Logger.Error("what is kept of earlier rounds cannot be read: going on without it", "error", err)
		h.loaded = true
	}
	c, err := s.renewed(ctx, c)
	if err != nil {
		return commit{}, err
	}
	step, err := c.apply(msg, finish, p)
	if err != nil {
		return commit{}, err
	}
	if p.next != nil && !asks(step.next.NextRound, p.next) {
		if step, err = s.rolledBackThen(ctx, c, msg, finish, p, step); err != nil {
			return commit{}, err
		}
	}
	var redone []state.Kept
	if step.redone != nil {
		if redone, err = h.redo(ctx, *step.redone, step.before); err != nil {
			return commit{}, err
		}
	}
	records, kept, err := h.follow(step.record, step.model, s.config.Snapshots)
	if err != nil {
		return commit{}, err
	}
	kept = append(redone, kept...)
	if err := s.config.Store.Commit(ctx, step.next, step.entries, kept...); err != nil {
		if back := (*state.RollbackError)(nil); errors.As(err, &back) {
			err = fmt.Errorf("%w: %w: %s", ErrBrokerRolledBack, err, brokerWayOut)
		}
		return commit{}, fmt.Errorf("commit round %d: %w", r, err)
	}
	h.records = records
	step.applied.Kept, step.applied.Rollback = h.newest().Kept, h.newest().Rollback
	return step, nil
}

// renewed returns the core of the committed state, if a change was committed since c was made; else c.
// History.mu is held.
func (s *Service) renewed(ctx context.Context, c *core) (*core, error) {
	if !s.config.History.edited {
		return c, nil
	}
	at, err := s.config.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	c, err = resume(s.config.Identity, at)
	s.config.History.edited = err != nil
	return c, err
}

// asks reports whether a signed round has the same point as another. It returns false for bytes that are no round.
func asks(signed []byte, other *wire.Round) bool {
	envelope, round := &wire.Signed{}, &wire.Round{}
	return stream.Unmarshal(signed, envelope) == nil && stream.Unmarshal(envelope.Body, round) == nil &&
		slices.Equal(round.Point, other.Point)
}

// rolledBackThen computes the commit again for an older copy of a state that was rolled back between this round and the
// one before: the next Round, which is stored already, asks at a kept model. It returns the given step if no kept model
// leads there. History.mu is held.
func (s *Service) rolledBackThen(ctx context.Context, c *core, msg stream.Message, finish bool, p pace,
	step commit) (commit, error) {
	h := s.config.History
	for i := len(h.records) - 1; i >= 0; i-- {
		r := h.records[i]
		if !r.Snapshot {
			continue
		}
		model, err := ReadModel(ctx, h.store, r.Round)
		if err != nil {
			return commit{}, err
		}
		alg, err := c.algorithm(c.committed)
		if err != nil {
			return commit{}, err
		}
		before := method.AppendFloats(nil, alg.Model()...)
		if learner.RollBack(alg, model) != nil {
			return step, nil
		}
		then := *c
		if then.committed.Algorithm, err = alg.MarshalBinary(); err != nil {
			return commit{}, err
		}
		again, err := then.apply(msg, finish, p)
		if err != nil {
			return commit{}, err
		}
		if !asks(again.next.NextRound, p.next) {
			continue
		}
		if last := h.newest(); last.Round+1 == c.round.Round {
			again.redone, again.before = last.rollBack(r.Round, last.Time), before
		}
		s.config.Logger.Warn("the model was rolled back here: doing so again", "to", r.Round, "before", c.round.Round)
		return again, nil
	}
	return step, nil
}

// edited reports a change between two rounds to the observer.
func (s *Service) edited(ctx context.Context) {
	at, err := s.config.Store.Load(ctx)
	if err != nil {
		return // the caller of the change gets the error
	}
	c, err := resume(s.config.Identity, at)
	if err != nil {
		return
	}
	alg, err := c.algorithm(at)
	if err != nil {
		return
	}
	p := s.progress(ctx, c.task, at, alg)
	if b := p.Rollback; b != nil && b.After == p.Round {
		s.config.Logger.Warn("an earlier model is released again, and the next round starts from it",
			"to", b.To, "after", b.After)
	}
	observe.Tell(s.config.Observer.Resumed, p)
}

// progress sums up a committed state and its history.
func (s *Service) progress(ctx context.Context, task *wire.Task, at state.Checkpoint, alg learner.Algorithm) Progress {
	out, h := progressOf(task, at, alg), s.config.History
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.load(ctx) == nil {
		out.Kept, out.Rollback = h.newest().Kept, h.newest().Rollback
	}
	return out
}
