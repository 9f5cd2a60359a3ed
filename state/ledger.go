package state

import "fmt"

// A Ledger is the privacy ledger as running sums of the reserved and spent costs of all rounds, of constant size. It is
// part of each [Checkpoint]; the store keeps its entries. The zero Ledger is empty and ready to use. A round goes
// through Reserve, then exactly one of Spend and Void. A Ledger is a value: a copy does not change with the original.
type Ledger struct {
	Head     head
	TaskHash Hash   // of every entry
	Open     Entry  // the open reservation; the zero Entry if there is none
	Steps    uint64 // rounds that were spent
	Voids    uint64 // rounds that were void
	InARow   uint64 // void rounds since the last that was spent
	// Counted sums up the users of the spent rounds, except rounds of Phase, the interactive phase of the round settled
	// last (0: none). Users of a phase answer each of its rounds; Most is the largest number in one of them.
	Counted, Phase, Most uint64
	Worst                Cost // the largest charge of a settled round
}

// IsOpen reports whether the last round is reserved and not settled.
func (l *Ledger) IsOpen() bool { return l.Open.Sequence > 0 }

// settled returns the number of rounds that were spent or void.
func (l *Ledger) settled() uint64 { return l.Steps + l.Voids }

// round returns the last round, 0 before the first.
func (l *Ledger) round() uint64 {
	if l.IsOpen() {
		return l.settled() + 1
	}
	return l.settled()
}

// Users returns the number of counted users. Users of an interactive phase answer each of its rounds, and are counted
// in the round that has most of them.
func (l *Ledger) Users() uint64 { return l.Counted + l.Most }

// Spent returns what the whole ledger costs the event that is charged most: the largest cost of a round, because an
// entry holds what its round and all others of the same user cost together (Theorem A in
// docs/proofs/theorem-a.md). The empty ledger costs nothing.
func (l *Ledger) Spent() Cost { return l.Worst.over(l.Open.Cost()) }

// settle takes the entry that settles the open round.
func (l *Ledger) settle(e Entry) {
	l.Open, l.Worst = Entry{}, l.Worst.over(e.Cost())
	if e.Phase != l.Phase {
		l.Counted, l.Phase, l.Most = l.Counted+l.Most, e.Phase, 0
	}
	switch {
	case e.Kind == Void:
		l.Voids, l.InARow = l.Voids+1, l.InARow+1
		return
	case e.Phase > 0:
		l.Most = max(l.Most, e.Users)
	default:
		l.Counted += e.Users
	}
	l.Steps, l.InARow = l.Steps+1, 0
}

// Reserve charges the worst case of the next round and returns the entry to commit together with the round's
// signed bytes. Of e the caller fills in Round, Users (the smallest cohort that may be released), NoiseTrials, Phase,
// Epsilon, Delta and TaskHash. If the ledger with this round would cost more than budget, nothing changes and
// the error is a [*BudgetError].
func (l *Ledger) Reserve(e Entry, budget Cost) (Entry, error) {
	if err := budget.validate(); err != nil {
		return Entry{}, fmt.Errorf("privacy budget: %w", err)
	}
	after := *l
	e, err := after.seal(e, Reserved)
	if err != nil {
		return Entry{}, err
	}
	if total := after.Spent(); total.Epsilon > budget.Epsilon || total.Delta > budget.Delta {
		return Entry{}, &BudgetError{Round: e.Round, Spent: l.Spent(), Increment: e.Cost(), Total: total, Budget: budget}
	}
	*l = after
	return e, nil
}

// Spend settles the open reservation with the figures of the batch that was released. Of e the caller fills in
// Round, Attempt, Users, NoiseTrials, Epsilon, Delta, TaskHash and BatchHash. A cost above the reservation is
// recorded all the same: the batch is public, and a ledger that refused it would tell less than the truth.
func (l *Ledger) Spend(e Entry) (Entry, error) {
	e.Phase = l.Open.Phase
	return l.seal(e, Spent)
}

// Void settles the open reservation of a round that released nothing that was used: a void batch, named by
// attempt and hash, or a round that was announced and then given up (attempt 0, zero hash). The round stays
// charged with its reservation, because its users may have answered.
func (l *Ledger) Void(round, attempt uint64, batch Hash) (Entry, error) {
	if !l.IsOpen() {
		return Entry{}, fmt.Errorf("void round %d: no reservation is open", round)
	}
	e := l.Open
	e.Round, e.Attempt, e.BatchHash = round, attempt, batch
	return l.seal(e, Void)
}

// seal fills in the place of e in the chain and its hash, and appends it.
func (l *Ledger) seal(e Entry, kind EntryKind) (Entry, error) {
	e.Kind, e.Sequence, e.Previous = kind, l.Head.Length+1, l.Head.Hash
	e.Hash = e.computeHash()
	return e, l.Append(e)
}

// validate refuses sums that no entries can have, as far as the sums alone show it.
func (l *Ledger) validate() error {
	fail := func(format string, args ...any) error { return fmt.Errorf("ledger: "+format, args...) }
	entries := 2 * l.settled()
	if l.IsOpen() {
		entries++
		if err := l.Open.validate(); err != nil {
			return err
		}
	}
	switch open := l.Open; {
	case l.Head.Length == 0 && *l != Ledger{}:
		return fail("it is empty and has sums, want none")
	case l.Head.Length == 0:
		return nil
	case l.Head.Hash.IsZero() || l.TaskHash.IsZero():
		return fail("a hash is zero in %d entries", l.Head.Length)
	case l.settled() < l.Steps || l.settled() > 1<<62 || l.Head.Length != entries:
		return fail("%d entries of %d spent and %d void rounds, want %d", l.Head.Length, l.Steps, l.Voids, entries)
	case l.InARow > l.Voids || l.Steps == 0 && l.InARow != l.Voids:
		return fail("%d void rounds in a row, of %d void and %d spent rounds", l.InARow, l.Voids, l.Steps)
	case l.Phase == 0 && l.Most > 0 || l.Steps == 0 && (l.Counted > 0 || l.Most > 0):
		return fail("%d and %d users of %d spent rounds in phase %d", l.Counted, l.Most, l.Steps, l.Phase)
	case l.IsOpen() && (open.Kind != Reserved || open.Round != l.settled()+1 || open.Sequence != l.Head.Length ||
		open.Hash != l.Head.Hash || open.TaskHash != l.TaskHash):
		return fail("the open reservation is entry %d, %s of round %d, want entry %d, of round %d", open.Sequence, open.Kind,
			open.Round, l.Head.Length, l.settled()+1)
	}
	if err := l.Worst.validate(); err != nil {
		return fail("largest charge: %w", err)
	}
	return nil
}

// A BudgetError reports a round that would exceed the privacy budget. Commands exit with code 3 on it.
type BudgetError struct {
	Round     uint64 // the refused round
	Spent     Cost   // charged without the round
	Increment Cost   // cost of the round alone
	Total     Cost   // charge including the round
	Budget    Cost
}

// Error names the spend so far and the refused increment separately.
func (e *BudgetError) Error() string {
	return fmt.Sprintf(
		"privacy budget refuses round %d: spent so far epsilon %v, delta %v; refused increment epsilon %v, delta %v; together epsilon %v, delta %v; budget epsilon %v, delta %v: the task ends here, or plan a new task",
		e.Round, e.Spent.Epsilon, e.Spent.Delta, e.Increment.Epsilon, e.Increment.Delta,
		e.Total.Epsilon, e.Total.Delta, e.Budget.Epsilon, e.Budget.Delta)
}
