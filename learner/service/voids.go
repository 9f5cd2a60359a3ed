package service

import (
	"bytes"
	"context"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// CalmVoids is the number of consecutive void rounds after which the learner does not pause yet.
const CalmVoids = 2

// The learner pauses after one more void round, twice as long after each further one, up to the longest pause. So a
// stage or broker that makes every round void receives 9 rounds in its first two hours and then one an hour, instead of
// using up users, each of whom answers once, as fast as they come.
const (
	voidPause    = time.Minute
	maxVoidPause = time.Hour
)

// pauseAfter returns the pause before the round that follows voids consecutive void rounds.
func pauseAfter(voids uint64) time.Duration {
	if voids <= CalmVoids {
		return 0
	}
	return voidPause << min(voids-CalmVoids-1, 6) // at most 64 minutes before the cap
}

// usedUp returns how many of the consecutive void rounds before a round may have used up a cohort. Rounds that the
// broker had lost, according to their batches, asked nobody. Counting stops when a larger count would not lengthen the
// pause.
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

// holdOff waits after consecutive void rounds before the next round is announced. It does not wait if that round is
// stored already or the task ends instead. The count is committed, so a restart does not shorten the pause.
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
