package state

import (
	"fmt"
	"iter"
	"slices"
)

// A Ledger is the privacy ledger in memory: what every round may cost and did cost. The zero Ledger is empty
// and ready to use. A round goes through Reserve, then exactly one of Spend and Void. A Ledger whose entries
// could not be committed is ahead of the disk: drop it and read it again.
type Ledger struct {
	chain   chain
	entries []Entry
	charged []Entry // one entry a round: the one that counts, by round - 1
	worst   Cost    // of all charged rounds but the last
}

// ReadLedger verifies the entries, from the first on, and returns the ledger that they make.
func ReadLedger(entries iter.Seq2[Entry, error]) (*Ledger, error) {
	l := new(Ledger)
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if err := l.Append(e); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Append adds an entry that is already sealed into a chain, and refuses one that may not come next.
func (l *Ledger) Append(e Entry) error {
	if err := l.chain.follow(e); err != nil {
		return err
	}
	l.entries = append(l.entries, e)
	if e.Kind == Reserved {
		l.worst = l.Spent()
		l.charged = append(l.charged, e)
	} else {
		l.charged[len(l.charged)-1] = e
	}
	return nil
}

// Head returns the length and last hash of the ledger, for Checkpoint.Ledger.
func (l *Ledger) Head() Head { return l.chain.head }

// Entries yields every entry in order. The error is always nil; it is there so that ReadLedger takes the result.
func (l *Ledger) Entries() iter.Seq2[Entry, error] { return Entries(l.entries) }

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

// Charged returns one entry for every round so far, the one that counts: the batch's real cost if the round
// was spent, else the reservation, settled as void or not settled yet.
func (l *Ledger) Charged() []Entry { return slices.Clone(l.charged) }

// Rounds yields what Charged returns, without a copy of all of it. The ledger must not change while it runs.
func (l *Ledger) Rounds() iter.Seq[Entry] { return slices.Values(l.charged) }

// Open returns the reservation that is not settled, if there is one.
func (l *Ledger) Open() (Entry, bool) { return l.chain.last, l.chain.open }

// Spent returns what the whole ledger costs the event that is charged most: the largest cost of a round, because an entry
// holds what its round and all others that the same user answers cost together (Theorem A in docs/theorem-a.md). The
// empty ledger costs nothing.
func (l *Ledger) Spent() Cost {
	if n := len(l.charged); n > 0 {
		return l.worst.over(l.charged[n-1].Cost())
	}
	return l.worst
}

// Reserve charges the worst case of the next round and returns the entry to commit together with the round's
// signed bytes. Of e the caller fills in Round, Users (the smallest cohort that may be released), NoiseTrials,
// Epsilon, Delta and TaskHash. If the ledger with this round would cost more than budget, nothing changes and
// the error is a [*BudgetError].
func (l *Ledger) Reserve(e Entry, budget Cost) (Entry, error) {
	if err := budget.Validate(); err != nil {
		return Entry{}, fmt.Errorf("privacy budget: %w", err)
	}
	c := l.chain
	e, err := c.seal(e, Reserved)
	if err != nil {
		return Entry{}, err
	}
	before := l.Spent()
	after := before.over(e.Cost())
	if after.Epsilon > budget.Epsilon || after.Delta > budget.Delta {
		return Entry{}, &BudgetError{Round: e.Round, Spent: before, Increment: e.Cost(), Total: after, Budget: budget}
	}
	return e, l.Append(e)
}

// Spend settles the open reservation with the figures of the batch that was released. Of e the caller fills in
// Round, Attempt, Users, NoiseTrials, Epsilon, Delta, TaskHash and BatchHash. A cost above the reservation is
// recorded all the same: the batch is public, and a ledger that refused it would tell less than the truth.
func (l *Ledger) Spend(e Entry) (Entry, error) {
	c := l.chain
	e, err := c.seal(e, Spent)
	if err != nil {
		return Entry{}, err
	}
	return e, l.Append(e)
}

// Void settles the open reservation of a round that released nothing that was used: a void batch, named by
// attempt and hash, or a round that was announced and then given up (attempt 0, zero hash). The round stays
// charged with its reservation, because its users may have answered.
func (l *Ledger) Void(round, attempt uint64, batch Hash) (Entry, error) {
	c := l.chain
	if !c.open {
		return Entry{}, fmt.Errorf("void round %d: no reservation is open", round)
	}
	e := c.last
	e.Round, e.Attempt, e.BatchHash = round, attempt, batch
	e, err := c.seal(e, Void)
	if err != nil {
		return Entry{}, err
	}
	return e, l.Append(e)
}

// seal fills in the place of e in the chain and its hash, and checks that it may come next. It moves c, so
// callers work on a copy.
func (c *chain) seal(e Entry, kind EntryKind) (Entry, error) {
	e.Kind, e.Sequence, e.Previous = kind, c.head.Length+1, c.head.Hash
	e.Hash = e.computeHash()
	return e, c.follow(e)
}

// A BudgetError refuses a round that would exceed the privacy budget. Commands exit with code 3 on it.
type BudgetError struct {
	Round     uint64 // the refused round
	Spent     Cost   // what is charged without it
	Increment Cost   // what the round costs alone
	Total     Cost   // what would be charged with it
	Budget    Cost
}

// Error names the spend so far and the refused increment separately.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("privacy budget refuses round %d: spent so far epsilon %v, delta %v; refused increment epsilon %v, delta %v; together epsilon %v, delta %v; budget epsilon %v, delta %v: the task ends here, or plan a new task",
		e.Round, e.Spent.Epsilon, e.Spent.Delta, e.Increment.Epsilon, e.Increment.Delta,
		e.Total.Epsilon, e.Total.Delta, e.Budget.Epsilon, e.Budget.Delta)
}
