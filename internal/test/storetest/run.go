package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/state"
)

// A Disk opens the same bytes each time it is called. It fails while an earlier store of it is open.
type Disk func() (state.Store, error)

// Run checks the contract of [state.Store] on examples; [RunHistory] checks it on any history. newDisk returns an
// empty disk.
func Run(t *testing.T, newDisk func(t *testing.T) Disk) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, disk func() Disk)
	}{
		{"Empty", testEmpty},
		{"ResumeEqualsUninterrupted", testResume},
		{"RefusedCommitChangesNothing", testRefused},
		{"KeepsNoCallerMemory", testAliases},
		{"CancelledContext", testContext},
		{"OneOwner", testOneOwner},
		{"Closed", testClosed},
		{"LedgerWhileInUse", testLedgerInUse},
		{"ConcurrentUse", testConcurrent},
		{"Kept", testKept},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, func() Disk { return newDisk(t) })
		})
	}
}

func open(t interface {
	Helper()
	Fatalf(string, ...any)
}, disk Disk) state.Store {
	t.Helper()
	s, err := disk()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func testEmpty(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	s := open(t, disk())
	defer s.Close()
	if _, err := s.Load(ctx); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("Load of an empty store: %v, want ErrEmpty", err)
	}
	for e, err := range s.Ledger(ctx) {
		t.Errorf("ledger of an empty store yields %+v, %v", e, err)
	}
	select {
	case <-s.Failed():
		t.Error("Failed is closed on a store that works")
	default:
	}
}

// testResume commits k rounds, reopens, commits the rest, for every k, and checks that the bytes equal an uninterrupted
// run's.
func testResume(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 7}
	var want []byte
	for k := uint64(0); k <= script.Rounds+1; k++ {
		d := disk()
		s := open(t, d)
		for i := uint64(0); i <= script.Rounds; i++ {
			if i == k {
				if err := s.Close(); err != nil {
					t.Fatalf("close after %d commits: %v", i, err)
				}
				s = open(t, d)
			}
			if err := script.Advance(ctx, s); err != nil {
				t.Fatalf("commit %d with a restart after %d: %v", i, k, err)
			}
			if n, err := script.Check(ctx, s); err != nil || n != i+1 {
				t.Fatalf("after commit %d: store has %d commits, %v", i, n, err)
			}
		}
		got := dump(t, s)
		if want == nil {
			want = got
		}
		if string(got) != string(want) {
			t.Errorf("restart after %d commits: bytes differ from those of one run", k)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// dump returns the encoded checkpoint and ledger.
func dump(t *testing.T, s state.Store) []byte {
	t.Helper()
	c, err := Read(context.Background(), s)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	b, err := c.MarshalBinary()
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	for e, err := range s.Ledger(context.Background()) {
		if err != nil {
			t.Fatalf("ledger: %v", err)
		}
		line, err := e.MarshalBinary()
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		b = append(b, line...)
	}
	return b
}

func testRefused(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 4}
	d := disk()
	s := open(t, d)
	var order *state.OrderError
	for commits := uint64(1); commits <= script.Rounds+1; commits++ {
		if err := script.Advance(ctx, s); err != nil {
			t.Fatal(err)
		}
		c, err := Read(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		_, last, err := script.At(c.Cursor.Round)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(ctx, c, last[len(last)-1:]); err == nil {
			t.Errorf("round %d committed twice", c.Cursor.Round)
		} else if c.Cursor.Round > 0 && !c.Ended() && !errors.As(err, &order) {
			t.Errorf("round %d committed twice: %v, want an OrderError", c.Cursor.Round, err)
		}
		if c.Ended() {
			break
		}
		next, added, err := script.Next(c)
		if err != nil {
			t.Fatal(err)
		}
		broken := next.Clone()
		broken.Ledger.Counted++
		if err := s.Commit(ctx, broken, added); err == nil {
			t.Error("a checkpoint with other sums was committed")
		}
		if err := s.Commit(ctx, next, nil); err == nil {
			t.Error("a round without its ledger entries was committed")
		}
		if n, err := script.Check(ctx, s); err != nil || n != commits {
			t.Fatalf("after refusals: %d commits, %v, want %d", n, err, commits)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, d)
	defer s.Close()
	if n, err := script.Check(ctx, s); err != nil || n != script.Rounds+1 {
		t.Fatalf("reopened: %d commits, %v", n, err)
	}
}

func testAliases(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 3}
	s := open(t, disk())
	defer s.Close()
	c, entries, err := script.Next(state.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, c, entries); err != nil {
		t.Fatal(err)
	}
	scribble := func(c state.Checkpoint) {
		for _, b := range [][]byte{c.Algorithm, c.Task, c.NextRound, c.LastBatch} {
			for i := range b {
				b[i] ^= 0xff
			}
		}
	}
	scribble(c)
	loaded, err := s.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	scribble(loaded)
	if n, err := script.Check(ctx, s); err != nil || n != 1 {
		t.Errorf("after the caller changed its slices: %d commits, %v", n, err)
	}
	if err := script.Advance(ctx, s); err != nil {
		t.Errorf("commit after the caller changed its slices: %v", err)
	}
}

func testContext(t *testing.T, disk func() Disk) {
	script := Script{Rounds: 3}
	s := open(t, disk())
	defer s.Close()
	if err := script.Advance(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, err := Read(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	next, entries, err := script.Next(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, next, entries); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit with a cancelled context: %v, want Canceled", err)
	}
	if _, err := s.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load with a cancelled context: %v, want Canceled", err)
	}
	if _, err := state.ReadLedger(s.Ledger(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("Ledger with a cancelled context: %v, want Canceled", err)
	}
	if n, err := script.Check(context.Background(), s); err != nil || n != 1 {
		t.Errorf("after a cancelled commit: %d commits, %v", n, err)
	}
}

func testOneOwner(t *testing.T, disk func() Disk) {
	d := disk()
	s := open(t, d)
	if second, err := d(); !errors.Is(err, state.ErrLocked) {
		t.Errorf("second open: %v, %v, want ErrLocked", second, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, d)
	if err := s.Close(); err != nil {
		t.Errorf("close after a refused open: %v", err)
	}
}

func testClosed(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 3}
	s := open(t, disk())
	if err := script.Advance(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Load: %v, want ErrClosed", err)
	}
	if _, err := state.ReadLedger(s.Ledger(ctx)); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Ledger: %v, want ErrClosed", err)
	}
	if err := s.Commit(ctx, state.Checkpoint{}, nil); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Commit: %v, want ErrClosed", err)
	}
	if err := s.Close(); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Close: %v, want ErrClosed", err)
	}
}

// testLedgerInUse uses the store inside a ledger loop, and leaves loops early.
func testLedgerInUse(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 5}
	s := open(t, disk())
	defer s.Close()
	for range 3 {
		if err := script.Advance(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for e, err := range s.Ledger(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			if err := script.Advance(ctx, s); err != nil {
				t.Fatalf("commit inside a ledger loop: %v", err)
			}
		}
		if e.Sequence != uint64(seen) {
			t.Fatalf("entry %d has sequence %d", seen, e.Sequence)
		}
	}
	if seen != 5 {
		t.Errorf("the loop saw %d entries, want the 5 of its start", seen)
	}
	for range s.Ledger(ctx) {
		break
	}
}

func testConcurrent(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script := Script{Rounds: 20}
	s := open(t, disk())
	if err := script.Advance(ctx, s); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				if _, err := s.Load(ctx); err != nil {
					t.Errorf("Load: %v", err)
					return
				}
				if _, err := state.ReadLedger(s.Ledger(ctx)); err != nil {
					t.Errorf("Ledger: %v", err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	c, err := Read(ctx, s)
	for range script.Rounds {
		if err != nil {
			break
		}
		var entries []state.Entry
		if c, entries, err = script.Next(c); err == nil {
			err = s.Commit(ctx, c, entries, script.Kept(c.Cursor.Round)...)
		}
	}
	close(done)
	readers.Wait()
	if err != nil {
		t.Error(err)
	}
	if n, err := script.Check(ctx, s); err != nil || n != script.Rounds+1 {
		t.Errorf("%d commits, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
