package device_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// Sorted rows mix over the rounds; a run that is interrupted goes on with the order that its store keeps, and nobody
// takes part twice.
func TestShuffledRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, cohort, window = 60, 15, 30
		w := newWorld(t, plan{rounds: users / cohort, cohort: cohort, deadline: time.Minute})
		s := newSpy(t, participation.NewMemoryStore())
		c := w.config(s)
		c.Shuffle = window
		first := func() (keys []int) {
			for i := range users {
				if _, joined := s.draws[participation.RowKey(c.Source, int64(i))][1]; joined {
					keys = append(keys, i)
				}
			}
			return keys
		}
		w.play(t.Context(), func(ctx context.Context) {
			dying, kill := context.WithCancel(ctx)
			_, err := w.client(c).Run(dying, func(yield func(row, error) bool) {
				for r, err := range rows(users+1, false) {
					if r.Number == users { // all are read, and half of them were offered
						time.Sleep(time.Minute)
						kill()
						return
					}
					if !yield(r, err) {
						return
					}
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("the first run: %v", err)
			}
			before, pinned, err := s.Pin()
			must(t, err)
			sum, err := w.client(c).Run(ctx, rows(users, false))
			must(t, err)
			checkSum(t, sum)
			if sum.Events != users || sum.Counted+sum.Unknown != users {
				t.Errorf("%+v, want %d users", sum, users)
			}
			if after, _, err := s.Pin(); err != nil || pinned && !reflect.DeepEqual(after, before) || after.Order == [32]byte{} {
				t.Errorf("the order was %x (pinned %t) and is %x, %v", before.Order, pinned, after.Order, err)
			}
		})
		s.audit(w)
		// In order they would be 0 to 14; that a shuffle gives those has probability 15!/30^15, 1 in 1e10.
		if got := first(); len(got) != cohort || slices.Equal(got, slices.Collect(numbers(cohort))) {
			t.Errorf("rows %v were in the first round", got)
		}
	})
}

// What a task that has ended did not ask for is said.
func TestUnusedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 10, deadline: time.Minute})
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(participation.NewMemoryStore())
			c.Shuffle = 5
			sum, err := w.client(c).Run(ctx, rows(33, false))
			must(t, err)
			if want := (device.Summary{Events: 33, Units: 33, Counted: 20, Uncounted: 13, Unused: 13, Rounds: 2}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
		})
	})
}
