package client

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// A MemoryLedger is a Ledger that a process loses with its memory: for simulations and tests.
type MemoryLedger struct {
	mu       sync.Mutex
	clock    time.Time
	accounts map[Key][]Charge
}

// NewMemoryLedger returns an empty ledger.
func NewMemoryLedger() *MemoryLedger { return &MemoryLedger{accounts: make(map[Key][]Charge)} }

// Update implements Ledger.
func (l *MemoryLedger) Update(clock time.Time, accounts []Key, edit func(time.Time, [][]Charge) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := LaterOf(l.clock, clock)
	charges := make([][]Charge, len(accounts))
	for i, k := range accounts {
		charges[i] = slices.Clone(l.accounts[k])
	}
	l.clock = now
	if err := edit(now, charges); err != nil {
		return err
	}
	for i, k := range accounts {
		l.accounts[k] = slices.Clone(charges[i])
	}
	return nil
}

// LaterOf is the clock of a ledger that was last told one time and is now told another, to the millisecond.
func LaterOf(last, clock time.Time) time.Time {
	clock = clock.Truncate(time.Millisecond).UTC()
	if last.After(clock) {
		return last
	}
	return clock
}

// Accounts implements Ledger.
func (l *MemoryLedger) Accounts() iter.Seq2[Account, error] {
	return func(yield func(Account, error) bool) {
		l.mu.Lock()
		all := maps.Clone(l.accounts)
		l.mu.Unlock()
		keys := slices.SortedFunc(maps.Keys(all), func(a, b Key) int { return slices.Compare(a[:], b[:]) }) // Everyone is zero
		for _, k := range keys {
			if !yield(Account{Key: k, Charges: slices.Clone(all[k])}, nil) {
				return
			}
		}
	}
}

// Clock implements Ledger.
func (l *MemoryLedger) Clock() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock, nil
}
