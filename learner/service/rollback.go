package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var (
	// ErrStateRolledBack means that the broker holds records of this learner that its state does not contain: the state
	// folder is an older copy. Set Config.AcceptRollback to continue.
	ErrStateRolledBack = errors.New("the state folder is older than the broker")
	// ErrBrokerRolledBack means that the broker does not hold the records that the committed state was made
	// from: it was restored from an older copy, replaced, or lost records that it had acknowledged.
	ErrBrokerRolledBack = errors.New("the broker is older than the state folder")
)

const (
	stateWayOut = "put the newest copy of the folder back, or let the learner apply the batches that stand on the broker " +
		"again, which leads to the same bytes: learner run --accept-rollback"
	goneWayOut = "put a copy of the folder back that is at most as old as the task's retention (schedule.retention), or begin a task " +
		"under another name, which may start from this model"
	brokerWayOut = "restore the broker's streams from a copy at least as new as the state folder, or both from one backup " +
		"(docs/how-to/runbook.md); if its replicas are still catching up, start again"
)

// patience is the default of Config.Patience.
const patience = 15 * time.Second

// A past is the part of the task's history that the broker shows before the learner writes anything in this
// life.
type past struct {
	newest  uint64 // announced round; 0: none
	records uint64 // number of records ever put on the stream of rounds
	decided uint64 // rounds 1 to decided have had a batch: all before newest, and newest too after End
	ended   bool   // End is on the broker
	reason  string // in End
}

// survey compares the committed state with the records on the broker. A commit comes before its announcement, so the
// broker knows at most the one round that is committed and not yet applied; any later record was announced by a newer
// state than this one. Conversely, a batch that was applied stays on the broker for the task's life.
//
// It sees only the records that the broker shows. A replica that hides the newest rounds lets an older copy of
// the state pass; that does no harm, because all that such a learner can do is to write the stored bytes again.
func (s *Service) survey(ctx context.Context, c *core) (past, error) {
	at := c.committed.Cursor
	var p past
	var err error
	if p.newest, p.records, err = s.broker.newestRound(ctx, c); err != nil {
		return p, err
	}
	p.decided = max(p.newest, 1) - 1
	end, err := s.broker.standingEnd(ctx, c)
	if err != nil {
		return p, err
	}
	if p.ended = end != nil; p.ended {
		p.decided, p.reason = end.LastRound, end.Reason
	}
	givenUp := p.ended && p.reason == ReasonGivenUp && p.decided == at.Round // the commit that follows this one
	switch {
	case givenUp && !c.committed.Ended():
		return p, s.older(ctx, p, at.Round)
	case c.committed.Ended() && p.decided > at.Round, p.ended && !c.committed.Ended() && p.decided <= at.Round:
		return p, fmt.Errorf("%w: the task is %s after round %d here, and %s after round %d there",
			ErrOtherLearner, over(c.committed.Ended()), at.Round, over(p.ended), p.decided)
	case c.committed.Ended():
		return p, nil // nothing follows, so no record is required
	case p.decided > at.Round:
		return p, s.older(ctx, p, at.Round)
	case p.newest <= at.Round+1 && p.records > at.Round+uint64(stream.KeptRounds):
		// newest is an old round, put again after it was removed
		return p,
			fmt.Errorf(
				"%w: round %d is committed here, %d records of rounds were put there, and those from round %d on were removed as old: %s",
				ErrStateRolledBack, at.Round, p.records, at.Round, goneWayOut)
	case p.newest < at.Round:
		return p, fmt.Errorf("%w: round %d is committed here, and the newest round there is %d: %s",
			ErrBrokerRolledBack, at.Round, p.newest, brokerWayOut)
	case at.Round == 0:
		return p, nil
	}
	return p, s.broker.lastBatch(ctx, at)
}

func over(ended bool) string {
	if ended {
		return "over"
	}
	return "going on"
}

// older returns an error for a state folder that is an older copy, or logs a warning if Config.AcceptRollback is set.
// If retention has removed the batch to apply next, it always returns an error.
func (s *Service) older(ctx context.Context, p past, committed uint64) error {
	if max(p.decided, p.records) > committed+uint64(stream.KeptRounds) { // newest may be an old round that was put again
		next := committed + 1
		_, err := s.broker.readPatiently(ctx, func() (stream.Message, error) {
			return s.config.Records.Get(ctx, s.config.Task.Batch(stream.Round(next)))
		}, true)
		if errors.Is(err, stream.ErrNotFound) {
			return fmt.Errorf(
				"%w: round %d is committed here, round %d is announced there, and the batches from round %d on were removed as old: %s",
				ErrStateRolledBack, committed, p.newest, next, goneWayOut)
		}
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("round %d", p.newest)
	if p.ended {
		what = fmt.Sprintf("the end of the task after round %d", p.decided)
	}
	if !s.config.AcceptRollback {
		return fmt.Errorf(
			"%w: round %d is committed here, and there stands %s, which is announced after round %d is committed: %s",
			ErrStateRolledBack, committed, what, max(p.decided, 1), stateWayOut)
	}
	s.config.Logger.Warn("the state folder is an older copy: applying the standing batches again",
		"committed", committed, "first", committed+1, "last", p.decided)
	return nil
}

// unbegun returns an error if a learner's records of the task are on the broker: a commit precedes them, so a folder
// without a commit did not write them. A learner that waits for the stage's key calls it too, because the stages of an
// ended task put no key.
func (s *Service) unbegun(ctx context.Context) error {
	for _, read := range []func() (stream.Message, error){
		func() (stream.Message, error) { return s.config.Records.Get(ctx, s.config.Task.Task()) },
		func() (stream.Message, error) { return s.config.Records.Latest(ctx, s.config.Task.Rounds()) },
		func() (stream.Message, error) { return s.config.Records.Get(ctx, s.config.Task.End()) },
	} {
		m, err := s.broker.readPatiently(ctx, read, false)
		switch {
		case err == nil:
			return fmt.Errorf("%s stands, and this state folder is empty: %w", m.Subject, ErrOtherLearner)
		case !errors.Is(err, stream.ErrNotFound):
			return err
		}
	}
	return nil
}

// newestRound returns the newest stored round, 0 if there is none. It retries while the last record is older than the
// committed round, until patience ends. The last record may then be an old round that was put again after retention had
// removed it, so the two rounds that the committed state knows are read by their numbers. records is the sequence of
// the last record, which is the number of records put so far.
func (b *broker) newestRound(ctx context.Context, c *core) (newest, records uint64, err error) {
	at := c.committed.Cursor.Round
	read := func(m stream.Message, err error) (stream.Message, error) {
		if err != nil {
			return m, err
		}
		round := &wire.Round{}
		_, err = seal.Verify(m.Data, c.identity.Public(), round)
		if err == nil {
			err = stream.CheckSubject(m.Subject, round)
		}
		if err = c.wrote(m.Subject, round.TaskHash, err); err != nil {
			return m, err
		}
		if newest = round.Round; newest < at {
			err = stream.ErrNotFound
		}
		return m, err
	}
	_, err = b.readPatiently(ctx, func() (stream.Message, error) {
		m, err := b.config.Records.Latest(ctx, b.config.Task.Rounds())
		records = m.Sequence
		return read(m, err)
	}, !c.committed.Ended() && at > 0)
	for _, r := range []uint64{at + 1, at} {
		if errors.Is(err, stream.ErrNotFound) && newest > 0 {
			_, err = b.readPatiently(ctx, func() (stream.Message, error) {
				return read(b.config.Records.Get(ctx, b.config.Task.Round(stream.Round(r))))
			}, false)
		}
	}
	if errors.Is(err, stream.ErrNotFound) {
		err = nil
	}
	return newest, records, err
}

// standingEnd returns the stored End, or nil.
func (b *broker) standingEnd(ctx context.Context, c *core) (*wire.End, error) {
	m, err := b.readPatiently(ctx, func() (stream.Message, error) {
		return b.config.Records.Get(ctx, b.config.Task.End())
	}, false)
	if errors.Is(err, stream.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end := &wire.End{}
	_, err = seal.Verify(m.Data, c.identity.Public(), end)
	if err == nil {
		err = stream.CheckSubject(m.Subject, end)
	}
	return end, c.wrote(m.Subject, end.TaskHash, err)
}

// wrote returns an error wrapping ErrOtherLearner if a record is not ours: err shows that it does not verify, or it
// belongs to another task.
func (c *core) wrote(subject string, task []byte, err error) error {
	if err == nil && !bytes.Equal(task, c.taskHash[:]) {
		err = errors.New("it is of another task")
	}
	if err != nil {
		return fmt.Errorf("%s: %w (%w)", subject, ErrOtherLearner, err)
	}
	return nil
}

// lastBatch checks that the batch that was applied last is stored unchanged.
func (b *broker) lastBatch(ctx context.Context, at state.Cursor) error {
	m, err := b.standingBatch(ctx, at.Round, func() (stream.Message, error) {
		return b.config.Records.Get(ctx, b.config.Task.Batch(stream.Round(at.Round)))
	})
	if err != nil {
		return err
	}
	return sameBatch(at, m)
}
