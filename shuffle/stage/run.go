package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A Stage is one stage process of one task.
type Stage struct {
	*facts
	ran  atomic.Bool
	wake <-chan struct{} // nil: only the timer wakes

	held     bool // what Observer.Lease was told last
	waits    bool // that the lease is another's was logged
	failures int  // in a row
	troubled stream.Trouble
	grace    time.Time   // until when a bound phase goes on after the context ended
	open     atomic.Bool // an attempt is

	mu     sync.Mutex // guards status
	status Status
}

// ErrRan says that Run was called before; a Stage lives once.
var ErrRan = errors.New("stage: Run was called before: make a new Stage")

// Run works until the task ends (nil), the context ends (its error; with Config.Drain an attempt that is open is ended first), or
// something is wrong that repeating does not mend. Whatever it returns, totals and key are gone. Call it once.
func (s *Stage) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return ErrRan
	}
	steps, stop := s.stepping(ctx)
	defer stop()
	s.watch(steps)
	p, err := introduce(s.facts)
	if err != nil {
		return err
	}
	for err == nil {
		if _, over := p.(*ended); over {
			break
		}
		s.open.Store(drains(p))
		if err = s.stopped(ctx, steps, p); err != nil {
			break
		}
		p, err = s.advance(steps, p)
	}
	p.abandon()
	s.giveUp(ctx)
	s.publish(p, false)
	return err
}

// stepping is the context of the steps. It ends with ctx, or, where an attempt is open then, when Drain is over.
func (s *Stage) stepping(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.Drain == 0 {
		return context.WithCancel(ctx)
	}
	steps, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !s.open.Load() {
			end()
			return
		}
		s.Logger.Info("asked to stop: ending the open attempt first", "at_most", s.Drain)
		timer := time.NewTimer(s.Drain)
		defer timer.Stop()
		select {
		case <-steps.Done():
		case <-timer.C:
			end()
		}
	})
	return steps, func() { stop(); end() }
}

// drains says that users were asked to an attempt that this phase has a part of.
func drains(p phase) bool {
	switch p.(type) {
	case *opening, *collecting, *sweeping:
		return true
	}
	return false
}

// stopped is the context's error, but grants an open attempt the time of Drain, and a bound phase a lease's time more.
func (s *Stage) stopped(ctx, steps context.Context, p phase) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	now := time.Now()
	if s.grace.IsZero() {
		s.grace = now.Add(s.Drain + s.LeaseTTL)
	}
	if p.footing() == bound && now.Before(s.grace) || drains(p) && steps.Err() == nil {
		return nil
	}
	return err
}

// advance takes one step of a phase and answers the phase that follows. On error it answers the phase to abandon.
func (s *Stage) advance(ctx context.Context, p phase) (phase, error) {
	if p.footing() == bound {
		ctx = context.WithoutCancel(ctx)
	}
	if p.footing() != free {
		s.upkeep(ctx)
	}
	now := time.Now()
	held := s.lease.holds(now)
	s.tellLease(held)
	if p.footing() == leased && !held {
		if _, standingBy := p.(*seeking); !standingBy {
			p.abandon()
			p = &seeking{facts: s.facts}
		}
		s.publish(p, held)
		s.sleep(ctx, s.lease.due)
		return p, nil
	}
	s.publish(p, held)
	todo := p.next(now)
	r, err := s.perform(ctx, p, todo)
	switch {
	case err != nil && ctx.Err() != nil:
		return p, nil // Run asks the context next
	case errors.Is(err, errMarked):
		return p.(*claiming).barred()
	case err != nil:
		if errors.Is(err, stream.ErrRefused) {
			return p, fmt.Errorf("stage: %s: the broker will never take it: %w", p, err)
		}
		s.trouble(ctx, todo.verb.String(), err)
		return p, nil
	}
	s.failures = 0
	if s.troubled.Over() {
		s.Logger.Info("the broker answers again")
	}
	if p.footing() == leased && !s.lease.holds(time.Now()) {
		return p, nil // too late to act on it: no claim is begun without the lease
	}
	after, err := p.took(time.Now(), todo, r)
	if err != nil {
		return p, fmt.Errorf("stage: %s: %w", p, err)
	}
	return after, nil
}

// perform does one step. Its calls end within a quarter of the lease's time, so that the lease can be kept.
func (s *Stage) perform(ctx context.Context, p phase, todo step) (r result, err error) {
	if todo.verb == wait {
		s.sleep(ctx, todo.until)
		return r, nil
	}
	if todo.verb == fetch {
		return r, s.fetch(ctx, p.(taker), todo)
	}
	ctx, cancel := context.WithTimeout(ctx, s.LeaseTTL/4)
	defer cancel()
	switch todo.verb {
	case get:
		r.message, err = found(s.Records.Get(ctx, todo.subject))
	case latest:
		r.message, err = found(s.Records.Latest(ctx, todo.subject))
	case put:
		r.put, err = s.Records.PutOnce(ctx, todo.subject, todo.data)
	case purge:
		if err := s.Reports.Purge(ctx, todo.subject); err != nil {
			s.Logger.Warn("could not purge reports; their key is gone all the same", "subject", todo.subject, "error", err)
			tell(s.Observer.Failed, "purge")
		}
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

// fetch examines what comes and acknowledges each right after: if this process dies, its totals die too. Without the
// lease nothing is acknowledged, because the reports may be another process's.
func (s *Stage) fetch(ctx context.Context, p taker, todo step) error {
	until := todo.until
	if s.lease.due.Before(until) {
		until = s.lease.due
	}
	limited, cancel := context.WithTimeout(ctx, max(0, time.Until(until))+s.LeaseTTL/4)
	defer cancel()
	deliveries, err := s.Reports.Fetch(limited, todo.max, max(0, time.Until(until)))
	if err != nil {
		return err
	}
	for i := range deliveries {
		d := &deliveries[i]
		s.upkeep(ctx)
		now := time.Now()
		if !s.lease.holds(now) || !p.examine(&d.Message) {
			break
		}
		s.crowd.saw(d.Sequence, d.Pending, now)
		if err := d.Ack(); err != nil { // it comes again, and is a duplicate then
			tell(s.Observer.Failed, "ack")
		}
		drop(deliveries[i : i+1])
	}
	drop(deliveries)
	return nil
}

// drop overwrites reports that are done with: as long as the attempt's key lives, a sealed report that was left in memory
// is an open one to whoever looks.
func drop(reports []stream.Delivery) {
	for i := range reports {
		clear(reports[i].Data)
	}
	clear(reports)
}

// watch asks to be woken; without it the timer does.
func (s *Stage) watch(ctx context.Context) {
	wake, err := s.Records.Watch(ctx, s.Task)
	if err != nil {
		s.Logger.Warn("no wake-ups from the broker, polling", "error", err, "poll", s.Poll)
		return
	}
	s.wake = wake
}

// sleep waits for a time, for the lease to need care, a wake, or the context.
func (s *Stage) sleep(ctx context.Context, until time.Time) {
	if due := s.lease.due; !due.IsZero() && due.Before(until) {
		until = due
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case _, ok := <-s.wake:
		if !ok {
			s.wake = nil
		}
	}
}

// trouble waits a little after a call that failed, longer each time.
func (s *Stage) trouble(ctx context.Context, call string, err error) {
	s.failures++
	s.Logger.Log(ctx, s.troubled.Level(time.Now(), err), "a call of the broker failed, trying again", "call", call, "failures", s.failures, "error", err)
	tell(s.Observer.Failed, call)
	pause := min(s.LeaseTTL/64<<min(s.failures, 6), s.Poll) + 1
	timer := time.NewTimer(pause/2 + time.Duration(s.jitter.Int64N(int64(pause))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
