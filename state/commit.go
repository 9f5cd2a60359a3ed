package state

import (
	"bytes"
	"fmt"
)

// An OrderError reports a commit whose round does not follow the committed one: its batch was applied already, or is
// too early.
type OrderError struct {
	Committed, Offered uint64
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("commit: round %d does not follow the committed round %d, want round %d", e.Offered, e.Committed,
		e.Committed+1)
}

// A RollbackError reports that a batch's stream sequence is not above the previous batch's: the broker was restored
// from an older copy, or replaced.
type RollbackError struct {
	Round             uint64
	Sequence, Earlier uint64
}

func (e *RollbackError) Error() string {
	return fmt.Sprintf(
		"commit: batch of round %d has stream sequence %d, the round before had %d: the broker was rolled back or replaced",
		e.Round, e.Sequence, e.Earlier)
}

// Next returns an error unless next may replace prev, adding exactly these entries to the ledger; a zero prev is the
// empty store. Four changes exist:
//
//   - the start: round 0, and the reservation of round 1 if NextRound is present;
//   - a step: round prev+1 with its Spent or Void entry, and the reservation of the round after it if NextRound
//     is present;
//   - the end between rounds: the same round, End instead of NextRound, and a Void entry for the announced round
//     that is given up;
//   - a change of what is kept: the same round without entries. Until the end Algorithm may change with it, when a
//     model is released again. Everything else stays the same, the announced round included.
//
// The task never changes, only the last of these changes may follow End, and the entries continue prev's ledger up to
// next's. Each of kept belongs to a round up to next's. Every [Store] applies a commit if and only if Next accepts it.
func Next(prev, next Checkpoint, entries []Entry, kept ...Kept) error {
	if err := next.validateFields(); err != nil {
		return err
	}
	for _, k := range kept {
		if err := k.validate(next.Cursor.Round); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	want := []EntryKind{}
	round := prev.Cursor.Round + 1 // of the first entry
	switch start := prev.IsZero(); {
	case start && next.Cursor.Round != 0:
		return fmt.Errorf("commit: the store is empty and round is %d, want round 0 first", next.Cursor.Round)
	case start:
	case next.Cursor.TaskHash != prev.Cursor.TaskHash:
		return fmt.Errorf("commit: task hash is %s, the store belongs to %s: use another state folder", next.Cursor.TaskHash,
			prev.Cursor.TaskHash)
	case !bytes.Equal(next.Task, prev.Task):
		return fmt.Errorf("commit: signed task message differs from the stored one (%d bytes, stored %d): it is planned once",
			len(next.Task), len(prev.Task))
	case len(entries) == 0 && len(kept) > 0 && next.Cursor.Round == prev.Cursor.Round:
		if !onlyKeeps(prev, next) {
			return fmt.Errorf(
				"commit: what is kept at round %d changes its state, want only the algorithm to change, and none after the end",
				prev.Cursor.Round)
		}
		return next.validateLedger()
	case prev.Ended():
		return fmt.Errorf("commit: the task ended at round %d, nothing may follow", prev.Cursor.Round)
	case next.Cursor.Round == prev.Cursor.Round && next.Ended():
		if !onlyEnds(prev, next) {
			return fmt.Errorf("commit: ending the task at round %d changes its state, want only end and ledger to change",
				prev.Cursor.Round)
		}
		want = append(want, Void)
	case prev.Cursor.Round+1 == 0 || next.Cursor.Round != prev.Cursor.Round+1:
		return &OrderError{Committed: prev.Cursor.Round, Offered: next.Cursor.Round}
	case prev.Cursor.BatchSequence != 0 && next.Cursor.BatchSequence != 0 &&
		next.Cursor.BatchSequence <= prev.Cursor.BatchSequence:
		return &RollbackError{Round: next.Cursor.Round, Sequence: next.Cursor.BatchSequence,
			Earlier: prev.Cursor.BatchSequence}
	default:
		want = append(want, Spent)
	}
	if !next.Ended() {
		want = append(want, Reserved)
	}
	return continues(prev, next, entries, want, round)
}

// onlyEnds reports whether next is prev with NextRound replaced by End.
func onlyEnds(prev, next Checkpoint) bool {
	prev.Ledger, prev.NextRound, prev.End = next.Ledger, nil, next.End
	return prev.Equal(next)
}

// onlyKeeps reports whether next is prev, or prev with another Algorithm before the end.
func onlyKeeps(prev, next Checkpoint) bool {
	if !prev.Ended() {
		prev.Algorithm = next.Algorithm
	}
	return prev.Equal(next)
}

// continues checks entries against the kinds that the change requires; Spent in want matches Spent and Void.
func continues(prev, next Checkpoint, entries []Entry, want []EntryKind, round uint64) error {
	if len(entries) != len(want) {
		return fmt.Errorf("commit: round %d brings %d ledger entries, want %d", next.Cursor.Round, len(entries), len(want))
	}
	ledger := prev.Ledger
	for i, e := range entries {
		kind := e.Kind
		if kind == Void && want[i] == Spent {
			kind = Spent
		}
		wantRound := round
		if e.Kind == Reserved {
			wantRound = next.Cursor.Round + 1
		}
		switch {
		case kind != want[i] || e.Round != wantRound:
			return fmt.Errorf("commit: ledger entry %d is %s of round %d, want %s of round %d", e.Sequence, e.Kind, e.Round,
				want[i], wantRound)
		case e.TaskHash != next.Cursor.TaskHash:
			return fmt.Errorf("commit: ledger entry %d has task hash %s, want %s", e.Sequence, e.TaskHash, next.Cursor.TaskHash)
		case want[i] == Spent && e.BatchHash != next.Cursor.BatchHash:
			return fmt.Errorf("commit: ledger entry %d has batch hash %s, the cursor has %s", e.Sequence, e.BatchHash,
				next.Cursor.BatchHash)
		}
		if err := ledger.Append(e); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	if next.Ledger != ledger {
		return fmt.Errorf("commit: checkpoint names ledger head %d %s or other sums, the entries end at %d %s",
			next.Ledger.Head.Length, next.Ledger.Head.Hash,
			ledger.Head.Length, ledger.Head.Hash)
	}
	return next.validateLedger()
}
