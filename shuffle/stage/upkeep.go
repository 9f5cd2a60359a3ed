package stage

import (
	"context"
	"time"
)

// upkeep looks at the lease or renews it, where that is due: at most one look and one write.
func (s *Stage) upkeep(ctx context.Context) {
	for range 2 {
		now := time.Now()
		look, write := s.lease.next(now)
		var err error
		switch {
		case look:
			err = s.lookAtLease(ctx)
		case write:
			err = s.writeLease(ctx, s.LeaseTTL)
		default:
			return
		}
		if err != nil {
			s.lease.failed(time.Now())
			s.Logger.Debug("the lease is somebody else's, or the broker failed", "error", err)
			tell(s.Observer.Failed, "lease")
			return
		}
	}
}

func (s *Stage) lookAtLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.LeaseTTL/4)
	defer cancel()
	m, err := found(s.Records.Get(ctx, s.lease.subject))
	if err != nil {
		return err
	}
	now := time.Now()
	s.lease.saw(now, m)
	if s.lease.taken(now) && !s.waits {
		s.waits = true
		s.Logger.Info("standing by: another process works, or died less than its lease ago", "lease", s.lease.theirs)
	}
	return nil
}

func (s *Stage) writeLease(ctx context.Context, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.LeaseTTL/4)
	defer cancel()
	sent := time.Now()
	sequence, err := s.Records.Swap(ctx, s.lease.subject, s.lease.sequence, s.lease.record(ttl))
	if err != nil {
		return err
	}
	s.lease.wrote(sent, sequence)
	return nil
}

// giveUp lets the next process begin at once instead of after the lease's time.
func (s *Stage) giveUp(ctx context.Context) {
	if s.lease.known && s.lease.ours && s.lease.holds(time.Now()) {
		if err := s.writeLease(context.WithoutCancel(ctx), 0); err != nil {
			s.Logger.Debug("could not give the lease up; it expires", "error", err)
		}
	}
	s.lease.until = time.Time{}
	s.tellLease(false)
}

func (s *Stage) tellLease(held bool) {
	if held != s.held {
		s.held, s.waits = held, false
		s.Logger.Info("lease", "held", held)
		tell(s.Observer.Lease, held)
	}
}
