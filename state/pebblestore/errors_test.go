package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// TestEveryOperationFails lets the i-th file operation of a short run fail, for every i, once and from then on.
// Whatever is returned, an acknowledged commit survives the power cut that follows, and nothing is half there.
func TestEveryOperationFails(t *testing.T) {
	stride := int64(2)
	if longtest.Run(t, "failures of every second operation, with large commits of six in seven, 10 s") {
		stride = 1
	}
	for _, test := range []struct {
		name    string
		script  storetest.Script
		forever bool
	}{
		{"once", storetest.Script{Rounds: 3}, false},
		{"from then on", storetest.Script{Rounds: 3}, true},
		{"once, a new log at every commit", storetest.Script{Rounds: 2, Bytes: 100_000}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			script, forever, stride := test.script, test.forever, stride
			if stride > 1 && script.Bytes > 0 {
				stride = 7
			}
			failures, passes := 0, 0
			i := int64(1)
			for ; ; i += stride {
				i := i // Pebble's goroutines may outlive this turn
				var ops atomic.Int64
				mem := vfs.NewCrashableMem()
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if n := ops.Add(1); n == i || forever && n > i {
						return syscall.EIO
					}
					return nil
				}))
				l := &life{script: script, starts: 2}
				s, err := l.run(fs)
				if err != nil {
					failures++
				} else {
					passes++ // Pebble tolerates an error where nothing depends on it
				}
				if s != nil {
					wantFailed(t, s, err)
				}
				if err := survives(script, mem.CrashClone(vfs.CrashCloneCfg{}), l.acked.Load(), l.begun.Load()); err != nil {
					t.Errorf("operation %d failed: %v", i, err)
				}
				if ops.Load() < i {
					break
				}
			}
			fmt.Printf("MEASURED pebblestore, %s: %d injected failures over %d operations\n", test.name, failures+passes, i)
			t.Logf("%d operations; the run returned an error %d times and passed %d times", i, failures, passes)
			if failures < 10 {
				t.Errorf("only %d injected errors were noticed, want at least 10", failures)
			}
		})
	}
}

// wantFailed checks that a store whose commit failed is closed for good.
func wantFailed(t *testing.T, s *Store, err error) {
	t.Helper()
	if !errors.Is(err, state.ErrFailed) {
		// An error of the last Close, or a read that failed cleanly: the store holds no promise back.
		return
	}
	select {
	case <-s.Failed():
	default:
		t.Errorf("%v was returned and Failed is open", err)
	}
	if _, err := s.Load(context.Background()); !errors.Is(err, state.ErrFailed) {
		t.Errorf("Load after a failure: %v, want ErrFailed", err)
	}
	if err := s.Commit(context.Background(), state.Checkpoint{}, nil); !errors.Is(err, state.ErrFailed) {
		t.Errorf("Commit after a failure: %v, want ErrFailed", err)
	}
	if err := s.Close(); !errors.Is(err, state.ErrFailed) {
		t.Errorf("Close after a failure: %v, want ErrFailed", err)
	}
}

// TestDiskFull fills the disk between two commits, with the own file system in front of Pebble and without it, so
// that the error also takes Pebble's way through Fatalf. The commit must not be reported as done.
func TestDiskFull(t *testing.T) {
	ctx := context.Background()
	script := storetest.Script{Rounds: 5}
	for _, test := range []struct {
		name, full string // full is the suffix of the files that cannot be written
		bare       bool
		want       string
	}{
		{"log", ".log", false, "write"},
		{"everything", "", false, "write"},
		{"log, through Pebble's Fatalf", ".log", true, "fatal commit error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var full atomic.Bool
			mem := vfs.NewCrashableMem()
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, test.full) {
					return syscall.ENOSPC
				}
				return nil
			}))
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			s, err := Open(folder, Options{fs: fs, Logger: logger, Tail: shortTail})
			if test.bare {
				s, err = reopenBare(s, fs, logger)
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := script.Advance(ctx, s); err != nil {
					t.Fatal(err)
				}
			}
			full.Store(true)
			err = script.Advance(ctx, s)
			if !errors.Is(err, state.ErrFailed) || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) ||
				!strings.Contains(err.Error(), test.want) {
				t.Fatalf("commit on a full disk: %v, want ErrFailed with its cause in %q", err, test.want)
			}
			if n := strings.Count(log.String(), "state store failed"); n != 1 {
				t.Errorf("the failure was logged %d times, want once:\n%s", n, &log)
			}
			wantFailed(t, s, err)
			full.Store(false)
			if err := script.Advance(ctx, s); !errors.Is(err, state.ErrFailed) {
				t.Errorf("after the disk has room again: %v, want ErrFailed still", err)
			}
			if err := survives(script, mem.CrashClone(vfs.CrashCloneCfg{}), 3, 4); err != nil {
				t.Error(err)
			}
		})
	}
}

// reopenBare replaces s by a store of the same folder whose Pebble writes to fs directly.
func reopenBare(s *Store, fs vfs.FS, log *slog.Logger) (*Store, error) {
	if err := s.Close(); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(folder, fs)
	if err != nil {
		return nil, err
	}
	f := newFailure(log)
	db, err := pebble.Open(folder, Options{}.pebble(fs, lock, f))
	return &Store{failure: f, lock: lock, db: db, fs: fs, path: folder, tail: tailEntries}, err
}

// TestFatalfNeverReturns calls the logger as Pebble does: the call must block its goroutine for ever.
func TestFatalfNeverReturns(t *testing.T) {
	f := newFailure(nil)
	returned, deferred := make(chan struct{}), make(chan struct{})
	err := f.guard(func() error {
		defer close(deferred)
		f.Fatalf("commit error: %v", syscall.ENOSPC)
		close(returned)
		return nil
	})
	if !errors.Is(err, state.ErrFailed) {
		t.Errorf("guard returned %v, want ErrFailed", err)
	}
	select {
	case <-returned:
		t.Error("Fatalf returned")
	case <-deferred:
		t.Error("Fatalf ended the goroutine and ran Pebble's deferred functions")
	default:
	}
	if err := f.guard(func() error { t.Error("work was run after a failure"); return nil }); !errors.Is(err,
		state.ErrFailed) {
		t.Errorf("guard after a failure: %v, want ErrFailed", err)
	}
}

// TestPanicIsFailure covers Pebble's log writer, which panics when it is used after an error.
func TestPanicIsFailure(t *testing.T) {
	f := newFailure(nil)
	if err := f.guard(func() error { panic("log writer is broken") }); !errors.Is(err, state.ErrFailed) {
		t.Errorf("guard returned %v, want ErrFailed", err)
	}
	select {
	case <-f.ch:
	default:
		t.Error("Failed is open after a panic")
	}
}
