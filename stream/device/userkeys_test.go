package device_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestRunRefusesUserKeys checks that Run refuses UserKeys: rows have no user's key, so each would pay separately
// in every task and no total would bind.
func TestRunRefusesUserKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
		w.open(t.Context(), 1, 1, w.announce(t.Context(), 1))
		s, book := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
		c := w.config(s)
		c.Ledger, c.UserKeys = book, true
		c.Policy.MaxTotalEpsilon = 1.5 * w.cost()
		short, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		sum, err := w.client(c).Run(short, rows(10, false))
		if err == nil || !strings.Contains(err.Error(), "UserKeys") || sum != (device.Summary{}) {
			t.Errorf("%+v, %v: want an error about UserKeys and no event", sum, err)
		}
		if n := w.reports(1, 1); n != 0 || len(s.draws) != 0 {
			t.Errorf("%d reports, %d events charged", n, len(s.draws))
		}
	})
}

// Half of a device's memory is gone: participations without which users would go again are missed, and a ledger
// without the task is charged again and never refunded.
func TestLedgerAndParticipationsBelongTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 9, cohort: 10})
		first := w.announce(ctx, 1)
		w.open(ctx, 1, 1, first)
		store, book := participation.NewMemoryStore(), memory.NewLedger()
		run := func(s participation.Store, l ledger.Ledger) error {
			c := w.config(s)
			c.Ledger = l
			short, stop := context.WithTimeout(ctx, 30*time.Second)
			defer stop()
			_, err := w.client(c).Run(short, rows(3, false))
			return err
		}
		if err := run(store, book); !errors.Is(err, context.DeadlineExceeded) || w.reports(1, 1) != 3 {
			t.Fatalf("%v, %d reports", err, w.reports(1, 1))
		}
		refusal(t, "participations lost", run(participation.NewMemoryStore(), book), "participations")
		if n := w.reports(1, 1); n != 3 {
			t.Errorf("%d reports, want no more than the first 3", n)
		}
		empty := memory.NewLedger()
		if err := run(store, empty); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: first}) // nothing was opened
		if err := run(store, empty); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if n, _ := standing(t, empty, w.hash); n != 1 {
			t.Errorf("%d events standing in a ledger that began too late, want 1", n)
		}
		if n, _ := standing(t, book, w.hash); n != 3 {
			t.Errorf("%d events standing in the ledger that was put aside, want 3", n)
		}
	})
}
