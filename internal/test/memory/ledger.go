package memory

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A Ledger is a device's ledger that a process loses with its memory.
type Ledger struct {
	mu       sync.Mutex
	clock    time.Time
	accounts map[participation.Key][]ledger.Charge
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{accounts: make(map[participation.Key][]ledger.Charge)} }

// Update implements ledger.Ledger.
func (l *Ledger) Update(clock time.Time, accounts []participation.Key, edit func(time.Time, [][]ledger.Charge) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := ledger.LaterOf(l.clock, clock)
	charges := make([][]ledger.Charge, len(accounts))
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

// Accounts implements ledger.Ledger.
func (l *Ledger) Accounts() iter.Seq2[ledger.Account, error] {
	return func(yield func(ledger.Account, error) bool) {
		l.mu.Lock()
		all := maps.Clone(l.accounts)
		l.mu.Unlock()
		// Everyone is zero
		keys := slices.SortedFunc(maps.Keys(all), func(a, b participation.Key) int { return slices.Compare(a[:], b[:]) })
		for _, k := range keys {
			if !yield(ledger.Account{Key: k, Charges: slices.Clone(all[k])}, nil) {
				return
			}
		}
	}
}

// Clock implements ledger.Ledger.
func (l *Ledger) Clock() (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock, nil
}
