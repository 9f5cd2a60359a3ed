package state

import (
	"fmt"
	"iter"
)

// head identifies a ledger: its number of entries and the hash of the last. The zero head is the empty ledger.
type head struct {
	Length uint64
	Hash   Hash
}

// Append adds an entry that is already sealed into the chain, and refuses one that may not come next.
func (l *Ledger) Append(e Entry) error {
	if err := e.validate(); err != nil {
		return err
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("ledger entry %d (%s, round %d): %s", e.Sequence, e.Kind, e.Round, fmt.Sprintf(format, args...))
	}
	open, last := l.IsOpen(), l.round()
	switch {
	case e.Sequence != l.Head.Length+1:
		return fail("follows entry %d, want sequence %d: entries are missing or repeated", l.Head.Length, l.Head.Length+1)
	case e.Previous != l.Head.Hash:
		return fail("previous hash is %s, the chain has %s: the ledger was damaged or changed", e.Previous, l.Head.Hash)
	case l.Head.Length > 0 && e.TaskHash != l.TaskHash:
		return fail("task hash is %s, the ledger belongs to %s", e.TaskHash, l.TaskHash)
	case e.Kind == Reserved && open:
		return fail("round %d is reserved and not settled, want spent or void first", last)
	case e.Kind == Reserved && e.Round != last+1:
		return fail("the last round is %d, want a reservation of round %d", last, last+1)
	case e.Kind != Reserved && !open:
		return fail("no reservation is open, want the round reserved before it is settled")
	case e.Kind != Reserved && e.Round != last:
		return fail("round %d is reserved, want that round settled", last)
	case e.Kind != Reserved && e.Phase != l.Open.Phase:
		return fail("it is of phase %d, its reservation is of phase %d", e.Phase, l.Open.Phase)
	case e.Kind == Void && (e.Cost() != l.Open.Cost() || e.Users != l.Open.Users || e.NoiseTrials != l.Open.NoiseTrials):
		return fail("a void round stays charged with its reservation %s, has %s", l.Open.Cost(), e.Cost())
	}
	l.Head, l.TaskHash = head{Length: e.Sequence, Hash: e.Hash}, e.TaskHash
	if e.Kind == Reserved {
		l.Open = e
		return nil
	}
	l.settle(e)
	return nil
}

// ReadLedger verifies the entries, from the first on, and returns the sums that they make, in constant memory.
func ReadLedger(entries iter.Seq2[Entry, error]) (Ledger, error) { return Ledger{}.read(entries) }

// read returns the ledger after the entries that follow l.
func (l Ledger) read(entries iter.Seq2[Entry, error]) (Ledger, error) {
	for e, err := range entries {
		if err != nil {
			return Ledger{}, err
		}
		if err := l.Append(e); err != nil {
			return Ledger{}, err
		}
	}
	return l, nil
}

// VerifyLedger reads the entries after base (all entries, if base is the zero Ledger) and returns an error if they do
// not lead to the sums of c: because the chain is broken, truncated, too long or another one, or the sums do not match.
func (c Checkpoint) VerifyLedger(base Ledger, entries iter.Seq2[Entry, error]) error {
	switch got, err := base.read(entries); {
	case err != nil:
		return err
	case got.Head != c.Ledger.Head:
		return fmt.Errorf(
			"ledger: ends at entry %d with hash %s, the checkpoint names entry %d with hash %s: the ledger was cut or changed",
			got.Head.Length, got.Head.Hash, c.Ledger.Head.Length, c.Ledger.Head.Hash)
	case got != c.Ledger:
		return fmt.Errorf("ledger: its %d entries have other sums than the checkpoint names: one of them was changed",
			got.Head.Length)
	}
	return nil
}

// Entries yields the given entries, each with a nil error.
func Entries(entries []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Charged yields for every round of a ledger the entry with its charge: the batch's real cost if the round was spent,
// else the reservation, whether settled as void or still open. It stops after the first error.
func Charged(entries iter.Seq2[Entry, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var open *Entry
		for e, err := range entries {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if open = nil; e.Kind == Reserved {
				open = &e
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
		if open != nil {
			yield(*open, nil)
		}
	}
}
