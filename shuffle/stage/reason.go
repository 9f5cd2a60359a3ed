package stage

import (
	"slices"
	"strings"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Reason names what became of one report message. The set is fixed and small, fit for metric labels. Messages are
// counted, not users: the number of users that a refused message claims is not authenticated.
type Reason uint8

const (
	// Accepted: every user of the message is in the totals.
	Accepted Reason = iota
	// WrongRound: sent to a round that is not the one being collected.
	WrongRound
	// WrongAttempt: sent to another attempt at the round, one that died.
	WrongAttempt
	// WrongTask: names the hash of another task.
	WrongTask
	// Malformed: not a report message in canonical encoding.
	Malformed
	// Version: of a wire version that this program does not speak.
	Version
	// Bundle: more users than the round allows in one message.
	Bundle
	// Length: not the one length that its number of users gives.
	Length
	// Undecryptable: does not open under this attempt's key, manifest and the ids it carries.
	Undecryptable
	// Range: opens, but holds a count that no device of the round can have drawn.
	Range
	// Duplicate: an id was counted before, or comes twice in the message.
	Duplicate
	// Closed: came when the cohort was complete.
	Closed
	// Grant: its token does not verify, was taken in this attempt, or was counted before. It counts users, each of whom is
	// refused alone, and is authentic.
	Grant

	reasons
)

var reasonNames = [reasons]string{"accepted", "wrong_round", "wrong_attempt", "wrong_task", "malformed", "version",
	"bundle", "length", "undecryptable", "range", "duplicate", "closed", "grant"}

// String returns the reason's metric label, which is also its name in a batch's rejects.
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

// ReasonNames returns the names of all reasons, ascending: what a batch may count rejects under.
func ReasonNames() []string {
	names := slices.Clone(reasonNames[:])
	slices.Sort(names)
	return names
}

func reasonOf(o shuffle.Outcome) Reason {
	switch o {
	case shuffle.Accepted:
		return Accepted
	case shuffle.Duplicate:
		return Duplicate
	case shuffle.BadBundle:
		return Bundle
	case shuffle.BadLength:
		return Length
	case shuffle.BadRange:
		return Range
	}
	return Closed
}

// rejects returns the canonical form of the counts in a batch: ascending, without zeros and without the accepted.
func rejects(counts [reasons]uint64) []*wire.Reject {
	var all []*wire.Reject
	for r, n := range counts {
		if Reason(r) != Accepted && n > 0 {
			all = append(all, &wire.Reject{Reason: Reason(r).String(), Count: n})
		}
	}
	slices.SortFunc(all, func(a, b *wire.Reject) int { return strings.Compare(a.Reason, b.Reason) })
	return all
}
