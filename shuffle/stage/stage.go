package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// A Stage is one stage process of one task.
type Stage struct {
	*environment
	ran     atomic.Bool
	wake    <-chan stream.Wake // nil: only the timer wakes
	fetcher fetcher
	keeper  leaseKeeper
	queue   queueWatch
	desk    placeDesk
	dialer  dialer

	failures int // in a row
	troubles *troubles
	grace    time.Time   // until when a bound phase goes on after the context ended
	open     atomic.Bool // users were asked to an attempt

	do func(context.Context, effects) (result, error) // perform; tests watch it

	mu     sync.Mutex // guards status
	status Status
}

// errRan is returned by Run if it was called before; a Stage lives once.
var errRan = errors.New("stage: Run was called before: make a new Stage")

// Run works until the task ends (nil), the context ends (its error; with Config.Drain an attempt that is open is ended
// first), or something is wrong that repeating does not mend. Whatever it returns, totals and key are gone. Call it
// once.
func (s *Stage) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errRan
	}
	steps, end := s.stepping(ctx)
	defer end()
	s.watch(steps)
	p, err := introduce(s.environment)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if !whole {
			s.eraseOrDie(p)
		}
	}()
	for err == nil {
		s.desk.caught.Again()
		todo := p.next(time.Now())
		if todo.call == stop {
			break
		}
		s.open.Store(todo.drains)
		s.desk.serve(steps)
		if err = s.stopped(ctx, steps, todo); err == nil {
			p, err = s.step(steps, p, todo.needs)
		}
	}
	whole = true
	p.abandon()
	s.fetcher.drop()
	s.dialer.hangUp()
	s.keeper.giveUp(ctx)
	s.publish(p, nil, false)
	return err
}

// eraseOrDie erases what must not outlive a Run that panics: somebody may catch that, and the process lives on. Where
// erasing panics too, or does not come to an end, the process ends, and its memory with it.
func (s *Stage) eraseOrDie(p phase) {
	die := func() { panic("stage: totals and keys could not be erased after a panic") }
	late := time.AfterFunc(s.LeaseTTL, die)
	defer late.Stop()
	if panics.Caught(func() error {
		p.abandon()
		s.fetcher.drop()
		s.dialer.hangUp()
		return nil
	}) != nil {
		go die() // nobody catches it there
		select {}
	}
}

// stepping returns the context of the steps. It ends with ctx, or, where an attempt is open then, when Drain is over.
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
		select {
		case <-steps.Done():
		case <-time.After(s.Drain):
			end()
		}
	})
	return steps, func() { stop(); end() }
}

// stopped returns the context's error, but grants an open attempt the time of Drain, and a bound phase a lease's time
// more.
func (s *Stage) stopped(ctx, steps context.Context, todo effects) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	now := time.Now()
	if s.grace.IsZero() {
		s.grace = now.Add(s.Drain + s.LeaseTTL)
	}
	if todo.needs == bound && now.Before(s.grace) || todo.drains && steps.Err() == nil {
		return nil
	}
	return err
}

// step keeps the lease, performs the effects of a phase and returns the phase that follows. On error it returns the
// phase to abandon.
func (s *Stage) step(ctx context.Context, p phase, needs need) (phase, error) {
	if needs == bound {
		ctx = context.WithoutCancel(ctx)
	}
	if needs != nothing {
		s.keeper.keep(ctx)
	}
	now := time.Now()
	held := s.lease.holds(now)
	s.keeper.tell(held)
	s.places.holds(s.lease.until, s.lease.asleep)
	if needs == leased && !held {
		p.abandon()
		s.fetcher.drop()
		s.troubles.forget()
		p = &seeking{environment: s.environment}
		s.publish(p, nil, false)
		s.sleep(ctx, s.lease.due)
		return p, nil
	}
	todo, landed := p.next(now), s.fetcher.landed
	s.publish(p, todo.attempt, held)
	r, err := s.do(ctx, todo)
	switch {
	case err != nil && ctx.Err() != nil:
		return p, nil // Run checks the context next
	case errors.Is(err, stream.ErrRefused):
		return p, fmt.Errorf("stage: %s: the broker will never take it: %w", p, err)
	case errors.Is(err, ErrFolder) || errors.As(err, new(*panics.Error)):
		return p, fmt.Errorf("stage: %s: %w", p, err)
	case err != nil:
		s.trouble(ctx, todo, todo.about(), err)
		return p, nil
	}
	if todo.call != wait && (todo.call != collect || s.fetcher.landed != landed) {
		s.failures = 0
		s.troubles.worked(todo.about())
	}
	if needs == leased && !s.lease.holds(time.Now()) {
		return p, nil // too late to act on it: no claim is begun without the lease
	}
	after, err := p.handle(time.Now(), todo, r)
	switch {
	case errors.Is(err, seal.ErrNotWritten):
		s.trouble(ctx, todo, forged+todo.about(), err)
		return p, nil
	case err != nil:
		return p, fmt.Errorf("stage: %s: %w", p, err)
	}
	s.troubles.worked(forged + todo.about())
	if after != p {
		s.troubles.forget()
	}
	return after, nil
}

// watch subscribes to wakes. Without them Run acts on its timer.
func (s *Stage) watch(ctx context.Context) {
	wake, err := s.Records.Watch(ctx, s.Task)
	if err != nil {
		s.Logger.Warn("no wake-ups from the broker, polling", "error", err, "poll", s.Poll)
		return
	}
	s.wake, s.wakes = wake, true
}

// forged is the prefix of the fault's name when a call returned a record that its writer did not write.
const forged = "forged "

// trouble logs a call that failed, and waits before the next one, longer each time.
func (s *Stage) trouble(ctx context.Context, todo effects, what string, err error) {
	s.failures++
	s.troubles.failed(ctx, what, err, "failures", s.failures)
	observe.Tell(s.Observer.Failed, todo.call.String())
	pause := min(s.LeaseTTL/64<<min(s.failures, 6), s.Poll) + 1
	select {
	case <-ctx.Done():
	case <-time.After(pause/2 + time.Duration(s.jitter.Int64N(int64(pause)))):
	}
}
