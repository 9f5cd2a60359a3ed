package client_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// TestARowPins: data that the reader refuses before the first row leave the store free for other data; the first row that a
// round has room for binds it to its source.
func TestARowPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		w.open(t.Context(), 1, 1, w.announce(t.Context(), 1))
		store := participation.NewMemoryStore()
		run := func(source string, of iter.Seq2[task.Row, error]) error {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := w.config(store)
			c.Source = source
			sum, err := w.client(c).Run(ctx, of)
			checkSum(t, sum)
			return err
		}
		pinned := func() string {
			pin, found, err := store.Pin()
			must(t, err)
			if found != (pin.Source != "") || found && pin.Task != w.hash {
				t.Errorf("pin %+v, found %t", pin, found)
			}
			return pin.Source
		}
		broken := errors.New("no such column")
		err := run("wrong.csv", func(yield func(task.Row, error) bool) { yield(task.Row{}, broken) })
		if !errors.Is(err, broken) || pinned() != "" {
			t.Errorf("%v, pinned to %q: want nothing", err, pinned())
		}
		if err := run("right.csv", rows(1, false)); !errors.Is(err, context.DeadlineExceeded) || pinned() != "right.csv" { // nobody closes
			t.Errorf("%v, pinned to %q: want right.csv", err, pinned())
		}
		refusal(t, "another source", run("wrong.csv", rows(1, false)), "source")
		if pinned() != "right.csv" || w.reports(1, 1) != 1 {
			t.Errorf("pinned to %q, %d reports", pinned(), w.reports(1, 1))
		}
	})
}
