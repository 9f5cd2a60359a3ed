package stage

import (
	"context"

	"github.com/panlearn/panlearn/internal/observe"
)

// A clearing empties the queue where this process has the lease and no attempt open.
//
// It reads the sequence that the next report will have, renews the lease, and purges everything below that sequence, of
// all rounds and attempts. The renewal is a compare-and-set write over our own last one: as it succeeds, nobody else
// has written the lease before it, so nobody else could open an attempt before the sequence was read, and all reports
// below it belong to dead attempts. However long the purge is under way after that, it never takes a report of
// somebody's open attempt: these have higher sequences. A purge without a bound, or with one that was read after a
// successor's Open, could.
type clearing struct{ before uint64 } // 0: not known

func (c *clearing) next() effects {
	if c.before == 0 {
		return effects{call: queued, needs: leased}
	}
	return effects{call: purge, before: c.before, needs: leased}
}

// handle returns whether that was all.
func (c *clearing) handle(did effects, r result) (clear bool) {
	if did.call == purge || r.queue == nil || r.queue.Messages == 0 {
		return true
	}
	c.before = r.queue.Next
	return false
}

// purge only makes room: the reports that it removes were of no use any more.
func (s *Stage) purge(ctx context.Context, before uint64) error {
	if err := s.keeper.confirm(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.LeaseTTL/4)
	defer cancel()
	if err := s.Reports.Purge(ctx, before); err != nil {
		s.Logger.Warn("could not purge reports; their keys are gone all the same", "error", err)
		observe.Tell(s.Observer.Failed, "purge")
	}
	return nil
}
