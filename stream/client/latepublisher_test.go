package client_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/memory"
)

// The task has ended and a Close is missing. A gateway that is started again reads its rows one by one, slower than
// anything answers: it waits for the Close, and does not take unanswered rows for no rows.
func TestRunWaitsForACloseAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 3})
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if op == memory.Put && strings.Contains(subject, ".close.") {
				return memory.Lost
			}
			return memory.None
		})
		store := participation.NewMemoryStore()
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(store)
			c.CloseWait = time.Hour
			first, stop := context.WithTimeout(ctx, 5*time.Second)
			sum, err := w.client(c).Run(first, rows(3, false))
			stop()
			if !errors.Is(err, context.DeadlineExceeded) || sum.Unknown != 3 {
				t.Fatalf("before the Close: %+v, %v", sum, err)
			}
			time.AfterFunc(20*time.Second, func() { w.broker.Inject(nil) })
			sum, err = w.client(c).Run(ctx, slowly(rows(3, false), 700*time.Millisecond))
			must(t, err)
			if sum.Events != 3 || sum.Counted != 3 {
				t.Errorf("after the Close: %+v, want 3 counted", sum)
			}
		})
	})
}

// slowly waits before each row.
func slowly(all iter.Seq2[task.Row, error], pace time.Duration) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for row, err := range all {
			time.Sleep(pace)
			if !yield(row, err) {
				return
			}
		}
	}
}
