package service

import (
	"bytes"
	"context"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// CalmVoids are the void rounds in a row that are taken for bad luck.
const CalmVoids = 2

// How long the learner waits before it announces a round after one more: twice as long for each further one, up to the
// longest. So a stage or a broker that makes every round void is asked 9 times in its first two hours and then once an
// hour, and not as often as users come, each of whom answers once.
const (
	voidPause    = time.Minute
	maxVoidPause = time.Hour
)

// pauseAfter returns the pause before the round that follows so many void rounds in a row.
func pauseAfter(voids uint64) time.Duration {
	if voids <= CalmVoids {
		return 0
	}
	return voidPause << min(voids-CalmVoids-1, 6) // 64 minutes, which the longest bounds
}

// usedUp returns how many of the void rounds in a row, before a round, may have used up a cohort. Rounds that
// the broker had lost, by their batch, asked nobody. The count stops where it makes no longer pause.
func (s *Service) usedUp(ctx context.Context, c *core, voids, next uint64) (count uint64) {
	for r := next - 1; r > 0 && r+voids >= next && pauseAfter(count) < maxVoidPause; r-- {
		var b wire.Batch
		subject := s.config.Task.Batch(stream.Round(r))
		m, err := s.config.Records.Get(ctx, subject)
		if err == nil {
			_, err = seal.Verify(m.Data, c.task.StageKey, &b)
		}
		if err != nil || stream.CheckSubject(subject, &b) != nil || !bytes.Equal(b.TaskHash, c.taskHash[:]) ||
			b.Reason != stream.VoidRoundLost {
			count++
		}
	}
	return count
}

// holdOff waits after void rounds in a row before the next round is announced: not where it is stored already,
// or where the task ends instead. The count is committed, so a restart does not make users go faster.
func (s *Service) holdOff(ctx context.Context, c *core, past past) error {
	voids, r := c.committed.Ledger.InARow, c.round.Round
	if voids <= CalmVoids || r <= past.newest {
		return nil
	}
	pause := min(pauseAfter(s.usedUp(ctx, c, voids, r)), maxVoidPause)
	if pause == 0 {
		return nil
	}
	s.config.Logger.Error(
		"rounds in a row were void: each has used up a cohort, so the next one waits; the stage and its log say why",
		"void_rounds_in_a_row", voids, "next_round", r, "wait", pause)
	for until := time.Now().Add(pause); time.Now().Before(until); {
		if asked, _ := s.config.Finish.state(); asked {
			return nil
		}
		if err := s.broker.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}
