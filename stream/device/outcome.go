package device

import (
	"fmt"
	"sync"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// An Outcome describes what became of one event.
type Outcome struct {
	State participation.State // Counted, Uncounted, Unknown or Refused
	Round stream.Round        // the last round that it took part in; 0 if none
	// that round was not closed when the client ended: a later one with the same store learns more
	Open bool
	// Refused explains why a Refused event was not sent, or why an Uncounted one is not sent again: a further
	// round would cost more than the policy allows. It is nil for all others.
	Refused *consent.RefusedError
}

func (o Outcome) String() string { return fmt.Sprintf("%v in round %d", o.State, o.Round) }

// A Summary counts the outcomes of events: Events = Counted + Uncounted + Unknown + Refused. An event that is published
// again under its key counts once more if its outcome was already returned, and not while it is under way.
type Summary struct {
	Events    uint64 `json:"events"`    // users, or blocks of an organisation's rows: what a report is about
	Units     uint64 `json:"units"`     // rows, or people, that these are about: what privacy is stated for
	LeftOver  uint64 `json:"left_over"` // rows that were read and are too few for a block: not sent, and no events
	Surplus   uint64 `json:"surplus"`   // rows beyond those of a person that enter a report
	Counted   uint64 `json:"counted"`
	Uncounted uint64 `json:"uncounted"` // no batch holds it, and no round took it
	Unused    uint64 `json:"unused"`    // never sent: the task had ended, or the client; among the uncounted
	// ChargedUncounted counts the uncounted events that were sent, and so were charged: Uncounted = Unused +
	// ChargedUncounted.
	ChargedUncounted uint64 `json:"charged_uncounted"`
	// sent, and not again because a further round costs too much; among the uncounted
	NotAgain uint64 `json:"not_again"`
	Unknown  uint64 `json:"unknown"` // sent, and not known to be counted; never sent again
	// their round was not closed when the client ended: a later one learns more; among the unknown
	Open    uint64 `json:"open"`
	Refused uint64 `json:"refused"` // not sent, because the policy refused
	Invalid uint64 `json:"invalid"` // rows sent as the zero vector; among the units
	// rows without a readable key, or person, in a task that needs one: not sent, and no events
	Keyless uint64 `json:"keyless"`
	Rounds  uint64 `json:"rounds"` // rounds that these events were last part of
}

// A tally collects a Summary from the answers of the loop. Only answers count, so that its sums always agree.
type tally struct {
	mu      sync.Mutex
	sum     Summary
	reads   uint64 // rows that were read
	offers  uint64 // of them, rows that were offered, and rows that are left over
	open    uint64 // offers without an answer
	rounds  map[stream.Round]bool
	changed chan struct{} // holds a token after an answer
}

func newTally() *tally {
	return &tally{rounds: make(map[stream.Round]bool), changed: make(chan struct{}, 1)}
}

func (t *tally) read() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
}

// keyless counts a row that is no event.
func (t *tally) keyless() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Keyless++
	return t.sum.Keyless
}

// held returns the number of rows that were read and not offered yet.
func (t *tally) held() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads - t.offers
}

func (t *tally) offered(rows uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offers += rows
	t.open++
}

// withdrawn takes offered back, for an event that the loop did not take.
func (t *tally) withdrawn(rows uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offers -= rows
	t.open--
}

// left counts rows that are too few for a block.
func (t *tally) left(rows uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offers += rows
	t.sum.LeftOver += rows
}

// answered counts an event of some rows.
func (t *tally) answered(o Outcome, rows, invalid uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.sum.add(o, rows)
	t.sum.Invalid += invalid
	if o.Round != 0 {
		t.rounds[o.Round] = true
	}
	signal(t.changed)
}

// add counts one outcome.
func (s *Summary) add(o Outcome, rows uint64) {
	s.Events++
	s.Units += rows
	switch o.State {
	case participation.Counted:
		s.Counted++
	case participation.Uncounted:
		s.Uncounted++
		if o.Round == 0 {
			s.Unused++
		} else {
			s.ChargedUncounted++
		}
		if o.Refused != nil {
			s.NotAgain++
		}
	case participation.Unknown:
		s.Unknown++
		if o.Open {
			s.Open++
		}
	case participation.Refused:
		s.Refused++
	default:
		panic(fmt.Sprintf("client: outcome %v", o))
	}
}

// waiting returns how many rows were read, and how many of those that were offered are without an answer.
func (t *tally) waiting() (reads, open uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads, t.open
}

func (t *tally) summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sum
	s.Rounds = uint64(len(t.rounds))
	return s
}
