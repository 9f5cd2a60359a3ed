package device

import "time"

// A Standing describes, in numbers, what a client waits for. None of them depends on the content of events.
type Standing struct {
	Agreed   bool      // the task is announced, and the policy agrees to it
	Silo     bool      // one organisation's rows are here, which has one report in a round
	Whole    bool      // all that it has is one block, which answers every round
	People   bool      // a unit is a person
	Open     bool      // the stage has opened the newest round, and it is not closed
	Unjoined bool      // the stage has opened the newest round, and the helper of trust split has not joined the attempt
	Closed   bool      // the newest round is closed, and the next one is not announced
	Minimum  uint64    // reports of all clients from which on the round closes at its deadline
	Deadline time.Time // of the newest attempt; zero: none
	// within which a silo's report leaves, from when it may join a round; 0: of others, or not known
	Leaves  time.Duration
	Waiting int // events that this client took in, and no round yet
	Charged int // events that were sent, or are about to be, and whose round is not closed
}

// standing returns the Standing of the loop.
func (l *loop) standing() Standing {
	s := Standing{Agreed: l.contract.agreement != nil, Waiting: l.core.queue.holds()}
	if a := l.contract.agreement; a != nil {
		s.Silo, s.Whole, s.People = a.Spec.Silo != nil, a.Whole(), a.Spec.Privacy.ByUser()
	}
	if s.Silo && l.reports.maker != nil {
		s.Leaves = l.core.beats.within()
	}
	s.Charged = len(l.core.events) - min(s.Waiting, len(l.core.events))
	r := l.rounds.known.newest
	if r == nil || r.message == nil {
		return s
	}
	s.Minimum, s.Closed = r.place.Phase.GetMinimum(), r.closed != nil || r.done
	s.Unjoined = r.open != nil && !r.paired() && !s.Closed
	if s.Open = r.paired() && !s.Closed; s.Open {
		if limit := r.place.Deadline; limit > 0 {
			now := time.Now()
			s.Deadline = now.Add(limit - r.elapsed(now))
		}
	}
	return s
}
