package storetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

func TestMemoryContract(t *testing.T) {
	newDisk := func(*testing.T) storetest.Disk {
		var m *storetest.Memory
		return func() (state.Store, error) {
			if m == nil {
				m = storetest.NewMemory()
				return m, nil
			}
			next, err := m.Reopen()
			if err != nil {
				return nil, err
			}
			m = next
			return m, nil
		}
	}
	storetest.Run(t, newDisk)
	storetest.RunHistory(t, newDisk)
}

// TestMemoryFaults crashes before and after every commit of a run and checks that the run ends as if nothing had
// happened.
func TestMemoryFaults(t *testing.T) {
	ctx := context.Background()
	script := storetest.Script{Rounds: 6}
	for crash := range script.Rounds + 1 {
		for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.FailAfter} {
			m := storetest.NewMemory()
			m.Fault = func(next state.Checkpoint) storetest.Fault {
				if next.Cursor.Round == crash {
					return fault
				}
				return storetest.NoFault
			}
			for range crash {
				if err := script.Advance(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			if err := script.Advance(ctx, m); !errors.Is(err, state.ErrFailed) {
				t.Fatalf("commit with fault %d: %v, want ErrFailed", fault, err)
			}
			select {
			case <-m.Failed():
			default:
				t.Error("Failed is open after a crash")
			}
			if _, err := m.Load(ctx); !errors.Is(err, state.ErrFailed) {
				t.Errorf("Load after a crash: %v, want ErrFailed", err)
			}
			if err := m.Close(); !errors.Is(err, state.ErrFailed) {
				t.Errorf("Close after a crash: %v, want ErrFailed", err)
			}
			m, err := m.Reopen()
			if err != nil {
				t.Fatal(err)
			}
			want := crash
			if fault == storetest.FailAfter {
				want++
			}
			n, err := script.Check(ctx, m)
			if err != nil || n != want {
				t.Fatalf("after fault %d at commit %d: %d commits, %v, want %d", fault, crash, n, err, want)
			}
			for ; n <= script.Rounds; n++ {
				if err := script.Advance(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := script.Check(ctx, m); err != nil || n != script.Rounds+1 {
				t.Errorf("at the end: %d commits, %v", n, err)
			}
		}
	}
}
