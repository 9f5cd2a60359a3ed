// Package ledger keeps account of the cost of the tasks of one state folder to its users: an epsilon and a delta for
// each person and task, which outlives tasks, records of participation and restarts.
//
// A client charges before it publishes ([Add]), and records later that outcomes are known ([Settle]); nothing is given
// back. [Spent] sums up charges, as upper bounds; the policy decides which sums are too much (package consent). A
// [Ledger] keeps the charges: in a file (package filestore), or in [memory].
package ledger

import (
	"iter"
	"time"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// Everyone is the account of all users of a ledger together: a bound for each of them, whichever events are
// theirs.
var Everyone = participation.Key{}

// A Ledger remembers the cost of the tasks of one state folder to its users. It outlives tasks, and must not be
// restored from a backup. Several clients may use one at the same time. Calls may come from any goroutine.
//
// A ledger's clock is the latest time that it was ever given: a clock that is set back gives no budget back.
type Ledger interface {
	// Update hands the charges of accounts to edit, which changes the slice of each in place, and makes the result
	// durable in one write before it returns. now is the ledger's clock, to the millisecond. Where edit fails, no
	// charge is changed, and its error is returned as it is; the clock is kept all the same. After any other error
	// nobody knows what is stored, and the caller sends nothing.
	Update(clock time.Time, accounts []participation.Key, edit func(now time.Time, charges [][]Charge) error) error

	// Accounts yields all accounts, Everyone first. Nothing is written while it runs.
	Accounts() iter.Seq2[Account, error]

	// Clock returns the latest time that the ledger was given; zero if there is none yet.
	Clock() (time.Time, error)
}

// An Account is one user's charges, or Everyone's.
type Account struct {
	Key     participation.Key
	Charges []Charge
}

// LaterOf returns the clock of a ledger that was last told one time and is now told another, to the millisecond.
func LaterOf(last, clock time.Time) time.Time {
	clock = clock.Truncate(time.Millisecond).UTC()
	if last.After(clock) {
		return last
	}
	return clock
}
