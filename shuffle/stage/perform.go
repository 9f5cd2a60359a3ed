package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// OwnDisk begins the cause of a failure that is this process's and not the broker's: its marks cannot be read or
// written.
const OwnDisk = "the disk of the stage's own --state"

// perform makes one call. Its requests end within a quarter of the lease's time, so that the lease can be kept.
func (s *Stage) perform(ctx context.Context, todo effects) (r result, err error) {
	switch todo.call {
	case wait:
		s.sleep(ctx, todo.until)
		return r, nil
	case collect:
		if todo.attempt.pair != nil {
			return r, s.collectShared(ctx, todo)
		}
		r.woken, err = s.collect(ctx, todo)
		return r, err
	case exchanged:
		r.answer, err = s.ask(ctx, todo)
		return r, err
	case purge:
		return r, s.purge(ctx, todo.before)
	}
	ctx, cancel := context.WithTimeout(ctx, s.LeaseTTL/4)
	defer cancel()
	switch todo.call {
	case get:
		r.message, err = found(s.Records.Get(ctx, todo.subject))
	case latest:
		r.message, err = found(s.Records.Latest(ctx, todo.subject))
	case put:
		r.put, err = s.Records.PutOnce(ctx, todo.subject, todo.data)
	case queued:
		r.queue = s.queue.look(ctx)
	case marked:
		if r.marked, err = s.Marks.Claimed(s.taskHash); err != nil {
			err = fmt.Errorf("%s: marks of claimed rounds: %w", OwnDisk, err)
		}
	case mark:
		if r.ours, err = s.Marks.Claim(s.taskHash, todo.round, todo.owner); err != nil {
			err = fmt.Errorf("%s: mark round %d before it is claimed: %w", OwnDisk, todo.round, err)
		}
	case find, begin, prepared, keep, overwrite:
		if r, err = s.ofFolder(todo); err != nil && !errors.Is(err, ErrFolder) {
			err = fmt.Errorf("%s: %w", OwnDisk, err)
		}
	}
	return r, err
}

// ofFolder makes one step on the leader's folder.
func (s *Stage) ofFolder(todo effects) (r result, err error) {
	folder := s.Leader.Folder
	switch todo.call {
	case find:
		var found Found
		found, err = folder.Find(s.taskHash)
		r.found = &found
	case begin:
		err = folder.Begin(s.taskHash)
	case prepared:
		r.ours, err = folder.Prepare(s.taskHash, todo.prepared)
	case keep:
		r.ours, err = folder.Release(s.taskHash, todo.x, todo.data)
	case overwrite:
		r.ours, err = folder.Drop(s.taskHash, todo.x)
	}
	return r, err
}

func found(m stream.Message, err error) (*stream.Message, error) {
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &m, nil
}

// chunk is the number of reports that are examined between two looks at the lease.
const chunk = 64

// collect examines some of the reports that the last fetch brought, and acknowledges them: if this process dies, its
// totals die too. The next fetch is under way meanwhile. Without the lease nothing is acknowledged, because the reports
// may be another process's; and because a clock may have stopped, acknowledgements of reports that could be another
// process's are kept until the lease is confirmed. woken reports whether a wake ended the wait for reports.
func (s *Stage) collect(ctx context.Context, todo effects) (woken bool, err error) {
	f, a := &s.fetcher, todo.attempt
	timeout := max(0, time.Until(todo.until))
	f.ask(ctx, s.Prefetch, a.room(), timeout, s.LeaseTTL/4)
	if len(f.ready) == 0 {
		until := todo.until
		if s.lease.due.Before(until) {
			until = s.lease.due
		}
		if keep := f.keptAt.Add(keepFor); len(f.kept) > 0 && keep.Before(until) {
			until = keep
		}
		var open bool
		if woken, open, err = f.wait(ctx, until, s.wake); err != nil {
			return woken, err
		}
		if !open {
			s.deaf()
		}
		f.ask(ctx, s.Prefetch, a.room(), timeout, s.LeaseTTL/4)
	}
	a.places.waits(a.table, uint64(len(f.ready))+f.behind, a.backlog.examined, f.landedAt)
	reports, users := f.ready[:min(len(f.ready), chunk)], a.mixer.Users()
	n := a.examineAll(reports)
	now := time.Now()
	if a.mixer.Users() > users {
		a.term.newest = now
	}
	if !s.lease.holds(now) {
		return woken, nil
	}
	for i := range reports[:n] {
		d := &reports[i]
		a.backlog.saw(d.Sequence, d.Pending, d.Came, now)
		if a.opener.precedes(d.Subject) {
			f.keep(d.Ack, now)
		} else {
			s.acknowledge(d.Ack)
		}
	}
	if f.done(n); n < len(reports) { // the cohort is full, and nothing more is opened
		f.done(len(f.ready))
	}
	a.places.waits(a.table, uint64(len(f.ready))+f.behind, a.backlog.examined, f.landedAt)
	s.queue.tellFloods(now, f.redelivered)
	return woken, s.acknowledgeKept(ctx, now)
}

func (s *Stage) acknowledge(ack func() error) {
	if err := ack(); err != nil { // it comes again, and is a duplicate then
		observe.Tell(s.Observer.Failed, "ack")
	}
}

// acknowledgeKept acknowledges the reports that belong to no attempt that could be open: as we have the lease, nobody
// has opened a later one.
func (s *Stage) acknowledgeKept(ctx context.Context, now time.Time) error {
	f := &s.fetcher
	if len(f.kept) == 0 || len(f.kept) < mostKept && now.Before(f.keptAt.Add(keepFor)) {
		return nil
	}
	kept := f.kept
	f.kept = nil
	if err := s.keeper.confirm(ctx); err != nil {
		return err
	}
	for _, ack := range kept {
		s.acknowledge(ack)
	}
	return nil
}

// sleep waits for a time, for the lease to need care, a wake, or the context.
func (s *Stage) sleep(ctx context.Context, until time.Time) {
	if due := s.lease.due; !due.IsZero() && due.Before(until) {
		until = due
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(until)):
	case _, ok := <-s.wake:
		if !ok {
			s.deaf()
		}
	}
}

// deaf ends the wakes.
func (s *Stage) deaf() { s.wake, s.wakes = nil, false }
