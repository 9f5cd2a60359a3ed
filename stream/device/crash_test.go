package device_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// The process dies at the i-th write of its store, for every i, with the write made or not; a second process goes on.
func TestDeathAtEveryWrite(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Split} {
		for _, lost := range []bool{true, false} {
			reached := true
			for i := 1; reached; i++ {
				if i > 200 {
					t.Fatal("the run never gets by without the death")
				}
				synctest.Test(t, func(t *testing.T) {
					reached = dieAndResume(t, participation.NewMemoryStore(), trust, i, lost)
				})
			}
		}
	}
}

// The same on a real file, which is closed and opened in between.
func TestDeathWithAFile(t *testing.T) {
	for _, i := range []int{1, 2, 4, 7} {
		path := filepath.Join(t.TempDir(), "state", "churn.participation")
		synctest.Test(t, func(t *testing.T) {
			r := &reopened{t: t, path: path}
			r.reopen()
			dieAndResume(t, r, []accounting.Trust{accounting.Shuffle, accounting.Split}[i%2], i, i%4 == 0)
		})
	}
}

// dieAndResume returns whether the death happened.
func dieAndResume(t *testing.T, store participation.Store, trust accounting.Trust, failAt int, lost bool) bool {
	w := newWorld(t, plan{rounds: 3, cohort: 12, minimum: 4, deadline: 30 * time.Second, bundle: 3, trust: trust})
	s := newSpy(t, store)
	s.failAt, s.lost = failAt, lost
	died := false
	w.play(t.Context(), func(ctx context.Context) {
		c := w.config(s)
		c.Bundle, c.Shuffle = 2, failAt%3*20 // as they are, one of 20 at a time, all of them
		sum, err := w.client(c).Run(ctx, rows(36, true))
		checkSum(t, sum)
		if died = errors.Is(err, errDied); !died {
			must(t, err)
		}
		s.failAt = 0
		if r, ok := store.(*reopened); ok {
			r.reopen()
		}
		c.Bundle = 1
		sum, err = w.client(c).Run(ctx, rows(36, true))
		must(t, err)
		checkSum(t, sum)
		if sum.Events != 36 || sum.Invalid != 7 {
			t.Errorf("died %t at write %d: %+v, want 36 events", died, failAt, sum)
		}
		if !died && sum.Counted != 36 {
			t.Errorf("a second run after a full one: %+v, want the same outcomes", sum)
		}
	})
	if r, ok := store.(*reopened); ok {
		defer r.close()
	}
	s.audit(w)
	return died
}

// A reopened is a file store that a new process opens.
type reopened struct {
	*filestore.Store
	t    *testing.T
	path string
}

func (r *reopened) reopen() {
	r.close()
	var err error
	r.Store, err = filestore.Open(r.path)
	must(r.t, err)
}

func (r *reopened) close() {
	if r.Store != nil {
		must(r.t, r.Store.Close())
	}
}

// While a round waits for its users, the replies to its reports become durable: a process that dies then leaves no user
// in doubt whose report is in no batch.
func TestAnswersAreStoredWhileARoundWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 8})
		store := participation.NewMemoryStore()
		w.play(t.Context(), func(ctx context.Context) {
			ctx, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() {
				_, err := w.client(w.config(store)).Run(ctx, rows(5, false))
				ended <- err
			}()
			time.Sleep(time.Minute)
			synctest.Wait()
			charged := 0
			for p, err := range store.Charged() {
				if err != nil {
					t.Error(err)
				}
				charged++
				if len(p.Sends) != 1 || p.Sends[0].Acked != 1 || p.Sends[0].Lowest == 0 {
					t.Errorf("stored sends %+v, want one with its answer", p.Sends)
				}
			}
			if charged != 5 {
				t.Errorf("%d events are charged, want 5", charged)
			}
			stop()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	})
}
