package helper

import (
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

// An Observer has functions that the helper calls on events, for metrics. Every field may be nil. Functions must not
// block, and may be called from any goroutine. Nothing here is about one user.
type Observer struct {
	// Message: a message of the exchange came.
	Message func(Reason)
	// Decided: so many reports of a request had an outcome.
	Decided func(o split.Outcome, reports uint64)
	// Joined: an attempt was joined.
	Joined func(stream.Round, stream.Attempt)
	// Dropped: an attempt that was joined is gone, and nothing of it was released.
	Dropped func(stream.Round, stream.Attempt)
	// Released: the round's Share of so many users is marked, so long after its attempt was joined.
	Released func(r stream.Round, users uint64, after time.Duration)
	// Refused: a Share that refuses a round was put.
	Refused func(stream.Round)
	// Failed: a call of the broker or the folder failed and will be repeated. call is one of get, latest, put, serve,
	// folder, mark.
	Failed func(call string)
}

// A Reason names what became of one message of the exchange. The set is fixed and small, fit for metric labels.
type Reason uint8

const (
	// Taken: it was acted upon, or is a copy of one that was.
	Taken Reason = iota
	// Unsigned: not the leader's, or malformed.
	Unsigned
	// Sealed: signed by the leader, and does not open under the attempt's key.
	Sealed
	// Strange: opens, and is no message that a leader sends.
	Strange
	// Elsewhere: of an attempt that this process does not hold and did not release. It was answered.
	Elsewhere

	reasons
)

var reasonNames = [reasons]string{"taken", "unsigned", "sealed", "strange", "elsewhere"}

// String returns the reason's metric label.
func (r Reason) String() string {
	if r >= reasons {
		return "invalid"
	}
	return reasonNames[r]
}

// Reasons returns all reasons, so that metrics can start at zero.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// A Status is a snapshot for health checks, metrics and people. It holds nothing of one user.
type Status struct {
	Task     stream.Task
	Phase    string       // what the helper is doing, in words
	Round    stream.Round // of the attempt that it holds; 0: none
	Attempt  stream.Attempt
	Users    uint64 // that it has counted in it
	Cohort   uint64
	Released stream.Round // the highest round that is marked; 0: none
	Leader   time.Time    // when the leader's last message came; zero: none yet
	Trouble  string       // why the call that failed last did; empty: all that failed have worked again
	Troubled time.Time    // since when calls fail; zero without Trouble
}

// Status returns what the helper is doing now. It may be called from any goroutine.
func (h *Helper) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	s.Released, s.Leader = stream.Round(h.mark.X.Round), h.heard
	s.Trouble, s.Troubled = h.troubles.Standing()
	if a := h.held; a != nil {
		s.Phase = "deciding reports"
		s.Round, s.Attempt, s.Cohort = stream.Round(a.x.Round), stream.Attempt(a.x.Number), a.cohort
		s.Users = a.helper.Users()
	}
	if h.closing != nil {
		s.Phase = "marking a release"
	}
	return s
}

// say sets the phase in words.
func (h *Helper) say(phase string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Phase = phase
}
