package streamtest

import (
	"errors"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

func swapConflicts(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	var last uint64
	for i := range 5 {
		if _, err := b.Swap(ctx, task.Lease(), last+1, []byte("wrong")); !errors.Is(err, stream.ErrConflict) {
			t.Fatalf("swap with a wrong sequence: %v", err)
		}
		next, err := b.Swap(ctx, task.Lease(), last, []byte{byte(i)})
		if err != nil || next <= last {
			t.Fatalf("swap %d after %d: %d, %v", i, last, next, err)
		}
		if _, err := b.Swap(ctx, task.Lease(), last, []byte("late")); !errors.Is(err, stream.ErrConflict) {
			t.Fatalf("swap with an old sequence: %v", err)
		}
		last = next
		if m := get(t, b, task.Lease()); m.Sequence != last || len(m.Data) != 1 || m.Data[0] != byte(i) {
			t.Fatalf("get of the lease: %+v", m)
		}
	}
}

func swapRacersOneWins(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	const racers = 8
	var last uint64
	for range 10 {
		sequences := make([]uint64, racers)
		errs := make([]error, racers)
		var group sync.WaitGroup
		for i := range racers {
			group.Go(func() { sequences[i], errs[i] = b.Swap(ctx, task.Lease(), last, []byte{byte(i)}) })
		}
		group.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("racers %d and %d both won", winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, stream.ErrConflict):
				t.Fatalf("racer %d: %v", i, err)
			}
		}
		if winner < 0 {
			t.Fatal("nobody won")
		}
		last = sequences[winner]
		if m := get(t, b, task.Lease()); m.Sequence != last || m.Data[0] != byte(winner) {
			t.Fatalf("racer %d won at %d, there is %+v", winner, last, m)
		}
	}
}
