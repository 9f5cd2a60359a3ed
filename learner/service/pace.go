package service

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// margin is the ratio of a round's deadline to the time that its cohort takes at the pace of the last round.
const margin = 3

// A pace describes how fast the users of a round came, by this process's clock. It contains nothing from their reports.
type pace struct {
	took  time.Duration // from the announcement, or this process's start, until the batch was found
	whole bool          // took counts from the announcement
	next  *wire.Round   // stored already: this state is an older copy, and has to write the same bytes
}

// deadline returns the deadline of the next round in milliseconds; 0 if the plan's deadline applies. It is margin times
// the time that its cohort takes at the pace of the last round that has one, within the plan's bounds. users is the
// number of users counted in the committed round; 0 if it was void. The pace of earlier rounds is derived from the
// committed Round's own deadline.
//
// Three kinds of rounds have no pace. The publishers of a first round may be started long after it. A void round has no
// users. The members of an interactive phase all come at once: members who are missing have left, and waiting longer
// does not bring them back. Silos are few and known, and the plan's deadline is set for their work.
func (c *core) deadline(next manifest.Place, users uint64, p pace) uint64 {
	plan := c.task.Plan
	switch least, most := plan.DeadlineMs, plan.StaleMs; {
	case p.next != nil:
		return p.next.DeadlineMs
	case c.round == nil || plan.Silos > 0 || most <= least:
		return 0
	default:
		own := c.perUser(users, p) * float64(next.Cohort)
		if !(own > float64(least)) {
			return 0
		}
		return uint64(min(own, float64(most)))
	}
}

// shortest is the least duration of a round of a task without end, as far as its largest cohort allows, because each
// round costs a commit and a broadcast.
const shortest = 5 * time.Second

// cohort returns the number of users at which the next round of an adaptive phase is full: as many as the method needs,
// but at least as many as come within shortest at the pace of the last round and at most as many as come until the
// latest deadline, within the plan's bounds. A round with a larger cohort would stay open past its deadline, because a
// round stays open while reports come.
func (c *core) cohort(next manifest.Place, wants, users uint64, p pace) uint64 {
	if p.next != nil {
		return p.next.Cohort
	}
	most := next.Phase.Top
	if users > 0 && p.whole && c.round.Round > 1 {
		come := func(in time.Duration) uint64 {
			return uint64(min(float64(users)*in.Seconds()/p.took.Seconds(), float64(most)))
		}
		if wants = max(wants, come(shortest)); c.task.GetPlan().GetStaleMs() > 0 {
			wants = min(wants, come(time.Duration(c.task.Plan.StaleMs)*time.Millisecond))
		}
	}
	return min(max(wants, next.Phase.Minimum), most)
}

// perUser returns the milliseconds of deadline for each user of the next round.
func (c *core) perUser(users uint64, p pace) float64 {
	before := float64(c.round.DeadlineMs) / float64(c.place.Cohort)
	seen := margin * float64(p.took.Milliseconds()) / float64(max(users, 1))
	switch {
	case users == 0, c.round.Round == 1:
		return before
	case c.place.Interactive() && users < c.place.Cohort:
		return before / 2
	case !p.whole:
		return max(before, seen)
	}
	return seen
}

// paceOf returns the pace of a round whose batch is stored. The round after it is stored already only if this state is
// an older copy.
func (s *Service) paceOf(ctx context.Context, c *core, past past, took time.Duration) (pace, error) {
	r := c.round.Round
	p := pace{took: took, whole: r > past.newest}
	subject := s.config.Task.Round(stream.Round(r + 1))
	m, err := s.broker.readPatiently(ctx, func() (stream.Message, error) { return s.config.Records.Get(ctx, subject) }, false)
	if errors.Is(err, stream.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.next = &wire.Round{}
	_, err = seal.Verify(m.Data, c.identity.Public(), p.next)
	if err == nil {
		err = stream.CheckSubject(m.Subject, p.next)
	}
	return p, c.wrote(m.Subject, p.next.TaskHash, err)
}

// lastUsers returns the number of users in the batch that a commit applies; 0 if the batch is void.
func (c *commit) lastUsers() uint64 {
	if c.applied.Void {
		return 0
	}
	return c.applied.BatchUsers
}
