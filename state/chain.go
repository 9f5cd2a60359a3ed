package state

import (
	"fmt"
	"iter"
)

// Head identifies a ledger: its number of entries and the hash of the last. The zero Head is the empty ledger.
type Head struct {
	Length uint64
	Hash   Hash
}

// chain checks entries one after another in constant memory.
type chain struct {
	head  Head
	task  Hash
	round uint64 // of the last entry
	open  bool   // the last entry is a reservation, kept in last
	last  Entry
}

// follow refuses an entry that may not come next and otherwise moves past it.
func (c *chain) follow(e Entry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("ledger entry %d (%s, round %d): %s", e.Sequence, e.Kind, e.Round, fmt.Sprintf(format, args...))
	}
	switch {
	case e.Sequence != c.head.Length+1:
		return fail("follows entry %d, want sequence %d: entries are missing or repeated", c.head.Length, c.head.Length+1)
	case e.Previous != c.head.Hash:
		return fail("previous hash is %s, the chain has %s: the ledger was damaged or changed", e.Previous, c.head.Hash)
	case c.head.Length > 0 && e.TaskHash != c.task:
		return fail("task hash is %s, the ledger belongs to %s", e.TaskHash, c.task)
	case e.Kind == Reserved && c.open:
		return fail("round %d is reserved and not settled, want spent or void first", c.round)
	case e.Kind == Reserved && e.Round != c.round+1:
		return fail("the last round is %d, want a reservation of round %d", c.round, c.round+1)
	case e.Kind != Reserved && !c.open:
		return fail("no reservation is open, want the round reserved before it is settled")
	case e.Kind != Reserved && e.Round != c.round:
		return fail("round %d is reserved, want that round settled", c.round)
	case e.Kind == Void && (e.Cost() != c.last.Cost() || e.Users != c.last.Users || e.NoiseTrials != c.last.NoiseTrials):
		return fail("a void round stays charged with its reservation %s, has %s", c.last.Cost(), e.Cost())
	}
	c.head = Head{Length: e.Sequence, Hash: e.Hash}
	c.task, c.round, c.open, c.last = e.TaskHash, e.Round, e.Kind == Reserved, e
	return nil
}

// VerifyLedger reads the whole ledger and refuses it if its chain is broken or is not the one that c names: cut
// short, longer, of another task, or without the reservation of the announced round.
func (c Checkpoint) VerifyLedger(entries iter.Seq2[Entry, error]) error {
	var got chain
	for e, err := range entries {
		if err != nil {
			return err
		}
		if err := got.follow(e); err != nil {
			return err
		}
	}
	switch announced := len(c.NextRound) > 0; {
	case got.head != c.Ledger:
		return fmt.Errorf("ledger: ends at entry %d with hash %s, the checkpoint names entry %d with hash %s: the ledger was cut or changed", got.head.Length, got.head.Hash, c.Ledger.Length, c.Ledger.Hash)
	case got.head.Length > 0 && got.task != c.Cursor.TaskHash:
		return fmt.Errorf("ledger: task hash is %s, the checkpoint has %s", got.task, c.Cursor.TaskHash)
	case got.open != announced:
		return fmt.Errorf("ledger: open reservation is %t, announced round is %t at round %d, want both or neither", got.open, announced, c.Cursor.Round)
	case announced && got.round != c.Cursor.Round+1:
		return fmt.Errorf("ledger: round %d is reserved, the checkpoint announces round %d", got.round, c.Cursor.Round+1)
	}
	return nil
}
