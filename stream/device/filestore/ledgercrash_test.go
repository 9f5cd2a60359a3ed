package filestore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestLedgerOnFaultyFolder checks that, wherever a write of the ledger fails (a rewrite included), and whether the
// process or the machine dies then, acknowledged charges are there afterwards, and none that was not requested. After a
// failed write every call of the ledger fails.
func TestLedgerOnFaultyFolder(t *testing.T) {
	faults := 0
	for seed := range uint64(400) {
		d := newFaulty(seed)
		open := func() *Ledger {
			l := newLedger("ledger")
			l.folder = d
			if err := l.create(); err != nil {
				t.Fatal(err)
			}
			return l
		}
		update := func(l *Ledger, n uint64) error {
			return l.Update(time.UnixMilli(1e12+int64(n)), []participation.Key{ledger.Everyone},
				func(now time.Time, charges [][]ledger.Charge) error {
					charges[0] = []ledger.Charge{{Name: "churn", Epsilon: 1, Delta: 1e-6, Standing: n, At: now}}
					return nil
				})
		}
		stands := func(l *Ledger) (n uint64) {
			for a, err := range l.Accounts() {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				n = a.Charges[0].Standing
			}
			return n
		}
		l, acknowledged := open(), uint64(0)
		for n := uint64(1); n <= 8; n++ {
			if n == 4 {
				d.left = int(seed / 4 % 12)
			}
			if seed%4 >= 2 {
				l.base = -ledgerCompact // the next write rewrites it
			}
			err := update(l, n)
			if err == nil {
				acknowledged = n
				continue
			}
			if !errors.Is(err, errFault) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			faults++
			d.left = -1
			if again := update(l, n); l.failed != nil &&
				(again == nil || !strings.Contains(again.Error(), "earlier write failed")) {
				t.Fatalf("seed %d: an update after a write that failed: %v", seed, again)
			} else if again == nil {
				acknowledged = n
			}
			break
		}
		if seed%2 == 0 {
			d.crash()
		} else {
			d.killed()
		}
		if n := stands(open()); n != acknowledged && n != acknowledged+1 {
			t.Errorf("seed %d: %d stand, %d were acknowledged", seed, n, acknowledged)
		}
	}
	if faults < 100 {
		t.Errorf("%d faults: the test shows little", faults)
	}
}
