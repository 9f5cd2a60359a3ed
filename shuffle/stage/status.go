package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A Status is a snapshot for health checks, metrics and people. It holds nothing of one user.
type Status struct {
	Task     stream.Task
	Phase    string       // what the stage is doing, in words
	Lease    bool         // this process works; otherwise it waits for the lease
	Round    stream.Round // being collected; 0: none
	Attempt  stream.Attempt
	Unjoined bool   // the attempt waits for the helper of trust split to join it, and nobody is asked before
	Users    uint64 // in the totals
	Cohort   uint64 // planned
	Minimum  uint64
	Deadline time.Time // when Minimum becomes enough; zero: never, or nothing is being collected
	Failures int       // calls of the broker that failed in a row
	Trouble  string    // why the call that failed last did; empty: all that failed have worked again
	Troubled time.Time // since when calls fail; zero without Trouble

	// rounds that the broker is behind what this process and the marks know: it was restored, or lost records
	Lost      uint64
	LostSince time.Time // when that was first seen; zero without Lost

	// since when the helper of trust split does not answer; zero: it does, or there is none
	HelperAway time.Time

	Redelivered uint64 // reports that this process was sent again
	Strange     uint64 // reports that came for no open attempt, since this process started
	Places      Places
	Queue       Queue // of a process that works; zero: the process waits for the lease
}

// A Queue holds the size of a task's stream of reports. MaxBytes is the limit of the stream; 0: not known.
type Queue struct {
	Messages, Bytes, MaxBytes uint64
}

// Status returns what the stage is doing now. It may be called from any goroutine.
func (s *Stage) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// publish updates Status with what a phase does; open is its open attempt, nil for none.
func (s *Stage) publish(p phase, open *attempt, held bool) {
	now := Status{Task: s.Task, Phase: p.String(), Lease: held, Failures: s.failures}
	now.Trouble, now.Troubled = s.troubles.of.Standing()
	now.Redelivered, now.Strange = s.fetcher.redelivered, s.floods.strange
	if held {
		now.Queue, now.Lost, now.LostSince = s.queue.size, s.older.lost(), s.older.since
	}
	now.HelperAway = s.helper
	now.Places = s.places.status(time.Now())
	now.Places.Refused = s.desk.served && !s.places.served()
	if open != nil {
		now.Round, now.Attempt, now.Users, now.Unjoined = open.round.number, open.number, open.users(), open.unjoined()
		now.Cohort, now.Minimum, now.Deadline = open.round.mixer.Cohort, open.round.mixer.Minimum, open.term.deadlineAt()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = now
}
